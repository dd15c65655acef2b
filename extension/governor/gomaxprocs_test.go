// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoRunsOnTwoThreadsAtLeast(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	var ts threads
	t.Setenv("GOMAXPROCS", "")
	runtime.GOMAXPROCS(1)
	ts.follow()
	require.Equal(t, 2, runtime.GOMAXPROCS(0))
	ts.restore()
	runtime.SetDefaultGOMAXPROCS()
	by := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(1)
	ts.follow()
	ts.follow()
	require.Equal(t, max(2, by), runtime.GOMAXPROCS(0), "where there are more by now, there are more")

	ts = threads{}
	runtime.GOMAXPROCS(3)
	ts.follow()
	ts.restore()
	require.Equal(t, 3, runtime.GOMAXPROCS(0), "enough")

	t.Setenv("GOMAXPROCS", "1")
	runtime.GOMAXPROCS(1)
	ts.follow()
	require.Equal(t, 1, runtime.GOMAXPROCS(0), "somebody wants it so")

	t.Setenv("GOMAXPROCS", "")
	ts.follow()
	runtime.GOMAXPROCS(4)
	ts.restore()
	require.Equal(t, 4, runtime.GOMAXPROCS(0), "somebody has set it meanwhile")
}
