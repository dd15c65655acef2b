// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestCriticalLive(t *testing.T) {
	const gib = 1 << 30
	for name, tt := range map[string]struct {
		runtime  Runtime
		limit    int64
		headroom float64
		want     int64
	}{
		"memory limit": {
			Runtime{MemoryLimit: 1_000_000_000, GCPercent: 100, Overhead: 20_000_000}, gib, 0.25, 827_022_000,
		},
		"never below the budget": {
			Runtime{MemoryLimit: 1_000_000_000, GCPercent: 100}, gib, 0, 970_000_000,
		},
		"overhead above the memory limit": {
			Runtime{MemoryLimit: 10, GCPercent: 100, Overhead: 11}, gib, 0.25, 0,
		},
		"GOGC alone": {
			Runtime{MemoryLimit: math.MaxInt64, GCPercent: 100, Overhead: 1000}, 1_000_000, 0.25, 474_000,
		},
		"neither": {Runtime{MemoryLimit: math.MaxInt64, GCPercent: -1}, gib, 0.25, Unbounded},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, CriticalLive(tt.runtime, tt.limit, tt.headroom))
		})
	}
}
