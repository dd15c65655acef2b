// SPDX-License-Identifier: Apache-2.0

package door

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeavyWorkHasTwoThreadsAtLeast(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	for name, k := range map[string]struct {
		env       string
		were, are int
		set       int // by somebody else meanwhile
		after     int // 0: what Go chooses
	}{
		"too few":              {were: 1, are: 2},
		"enough":               {were: 3, are: 3, after: 3},
		"wanted so":            {env: "1", were: 1, are: 1, after: 1},
		"set by somebody else": {were: 1, are: 2, set: 4, after: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", k.env)
			runtime.SetDefaultGOMAXPROCS()
			if k.after == 0 {
				k.after = runtime.GOMAXPROCS(0)
			}
			synctest.Test(t, func(t *testing.T) {
				var ts threads
				runtime.GOMAXPROCS(k.were)
				ts.want(threadsFrom)
				require.Equal(t, k.were, runtime.GOMAXPROCS(0), "it does not take long")
				for range 3 {
					ts.want(threadsFrom + 1)
					<-time.After(threadsHold - 1)
					require.Equal(t, k.are, runtime.GOMAXPROCS(0))
				}
				if k.set > 0 {
					runtime.GOMAXPROCS(k.set)
				}
				<-time.After(2 * threadsHold)
				require.Equal(t, k.after, runtime.GOMAXPROCS(0))
			})
		})
	}
}
