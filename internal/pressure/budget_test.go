// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBudget(t *testing.T) {
	const gib = 1 << 30
	for name, tt := range map[string]struct {
		runtime  Runtime
		limit    int64
		headroom float64
		want     int64
	}{
		"memory limit": {
			Runtime{MemoryLimit: 1_000_000_000, GCPercent: 100, Overhead: 20_000_000}, gib, 0.25, 712_950_000,
		},
		"memory limit without headroom": {
			Runtime{MemoryLimit: 1_000_000_000, GCPercent: 100}, gib, 0, 970_000_000,
		},
		"memory limit governs although collection by growth is off": {
			Runtime{MemoryLimit: 1_000_000_000, GCPercent: -1}, gib, 0, 970_000_000,
		},
		"overhead above the memory limit": {
			Runtime{MemoryLimit: 10, GCPercent: 100, Overhead: 11}, gib, 0.25, 0,
		},
		"GOGC alone": {
			Runtime{MemoryLimit: math.MaxInt64, GCPercent: 100, Overhead: 1000}, 1_000_000, 0.25, 449_000,
		},
		"GOGC alone, lazier": {
			Runtime{MemoryLimit: math.MaxInt64, GCPercent: 200}, 1_000_000, 0.25, 300_000,
		},
		"neither":                  {Runtime{MemoryLimit: math.MaxInt64, GCPercent: -1}, gib, 0.25, Unbounded},
		"GOGC in an unknown limit": {Runtime{MemoryLimit: math.MaxInt64, GCPercent: 100}, 0, 0.25, Unbounded},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, Budget(tt.runtime, tt.limit, tt.headroom))
		})
	}
}

func TestReadRuntimeFollowsTheRuntime(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r := ReadRuntime()
	require.EqualValues(t, 3<<30, r.MemoryLimit)
	require.Negative(t, r.GCPercent)
	require.Positive(t, r.Overhead)

	debug.SetMemoryLimit(math.MaxInt64)
	debug.SetGCPercent(150)
	r = ReadRuntime()
	require.EqualValues(t, math.MaxInt64, r.MemoryLimit)
	require.EqualValues(t, 150, r.GCPercent)
}
