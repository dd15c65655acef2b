// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACollectionThatFindsLittleAliveIsNoReasonForASample(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // so that none begins by itself
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, nil)
		elapse(time.Second + 2*lookPause) // between two ticks
		room := g.pool.Stats().Capacity
		for share, looks := range map[int64]bool{8: false, 2: true} {
			before := g.guard.looked.Load()
			r := *g.guard.runtime.Load()
			r.Live = room / share
			g.collected(r)
			synctest.Wait()
			require.Equal(t, looks, g.guard.looked.Load() > before, "one in %d bytes alive", share)
			elapse(time.Second)
		}
	})
}
