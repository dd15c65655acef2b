// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otel-governor/otel-governor/internal/pressure"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// roomy is a runtime whose budget bounds nothing in these tests.
var roomy = pressure.Runtime{MemoryLimit: math.MaxInt64 / 4, GCPercent: 100}

func TestPoolSize(t *testing.T) {
	v2 := func(limit int64) machine { return machine{limit: limit, source: "cgroup_v2", chosen: true} }
	for name, tt := range map[string]struct {
		machine  machine
		explicit int64
		fraction float64
		sync     bool
		want     int64
		origin   string
		share    float64
	}{
		"asynchronous":                  {machine: v2(1610612736), want: 805306368, origin: "cgroup_v2", share: 0.5},
		"synchronous":                   {machine: v2(1610612736), sync: true, want: 1207959552, origin: "cgroup_v2", share: 0.75},
		"v1":                            {machine: machine{limit: gib, source: "cgroup_v1", chosen: true}, want: gib / 2, origin: "cgroup_v1", share: 0.5},
		"no limit but the machine":      {machine: machine{limit: 24 * gib, source: "meminfo"}, want: 12 * gib, origin: "meminfo", share: 0.5},
		"not Linux":                     {machine: machine{limit: 16 * gib, source: "physical"}, sync: true, want: 12 * gib, origin: "physical", share: 0.75},
		"nothing known":                 {machine: machine{source: "fallback"}, want: gib, origin: "fallback"},
		"nothing known, a fraction set": {machine: machine{source: "fallback"}, fraction: 0.25, want: gib, origin: "fallback"},
		"explicit":                      {machine: v2(gib), explicit: 123456789, fraction: 0.1, want: 123456789, origin: "explicit"},
		"explicit, nothing known":       {machine: machine{source: "fallback"}, explicit: 64 * mib, want: 64 * mib, origin: "explicit"},
		"a fraction":                    {machine: v2(1000000000), fraction: 0.6, want: 600000000, origin: "cgroup_v2", share: 0.6},
		"a fraction rules over what is known of queues": {machine: v2(gib), fraction: 0.9, sync: true, want: 966367641, origin: "cgroup_v2", share: 0.9},
		"rounded down":           {machine: v2(1000000007), want: 500000003, origin: "cgroup_v2", share: 0.5},
		"the whole":              {machine: v2(1000000007), fraction: 1, want: 1000000007, origin: "cgroup_v2", share: 1},
		"larger than any memory": {machine: v2(math.MaxInt64), fraction: 1, want: math.MaxInt64, origin: "cgroup_v2", share: 1},
		"a limit of zero":        {machine: machine{limit: 0, source: "cgroup_v2", chosen: true}, want: 0, origin: "cgroup_v2", share: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			c := createDefaultConfig()
			if tt.explicit != 0 {
				c.Memory.PoolSize = &tt.explicit
			}
			if tt.fraction != 0 {
				c.Memory.PoolFraction = &tt.fraction
			}
			got := c.resolve(tt.machine, !tt.sync, roomy)
			require.Equal(t, tt.want, got.pool)
			require.Equal(t, tt.origin, got.origin)
			require.InDelta(t, tt.share, got.fraction, 0)
			require.Equal(t, tt.machine, got.machine)
		})
	}
}

func TestWhatGovernsIsTheSmallerOfPoolAndBudget(t *testing.T) {
	c := createDefaultConfig()
	limited := pressure.Runtime{MemoryLimit: 900 * mib, GCPercent: 100, Overhead: 20 * mib}
	s := c.resolve(machine{limit: 1000 * mib, source: "cgroup_v2"}, false, limited)
	require.EqualValues(t, 750*mib, s.pool)
	require.EqualValues(t, pressure.Budget(limited, 0, 0.25), s.budget)
	require.Less(t, s.budget, s.pool)
	require.Equal(t, s.budget, s.capacity())

	s = c.resolve(machine{limit: 1000 * mib, source: "cgroup_v2"}, true, limited)
	require.Equal(t, s.pool, s.capacity())
}

func TestLargestBatch(t *testing.T) {
	c := createDefaultConfig()
	require.EqualValues(t, 100*mib, sizing{budget: gib}.maxBatchMemory(c))
	require.EqualValues(t, 50*mib, sizing{budget: 100 * mib}.maxBatchMemory(c))
	most := int64(300 * mib)
	c.Admission.MaxBatchMemory = &most
	require.Equal(t, most, sizing{budget: 100 * mib}.maxBatchMemory(c))
}

func TestSizesThatCannotStart(t *testing.T) {
	c := createDefaultConfig()
	small := sizing{machine: machine{limit: 50 * mib, source: "cgroup_v1"}, origin: "cgroup_v1", fraction: 0.5, pool: 25 * mib}
	require.EqualError(t, small.check(c), "the memory pool would be 26214400 bytes (0.5 of the limit of 52428800 from"+
		" cgroup_v1) and must be at least 33554432 (32MiB): give the process more memory, or set 'memory::pool_size' or a"+
		" larger 'memory::pool_fraction'")
	require.NoError(t, sizing{pool: 32 * mib}.check(c))

	most := int64(64 * mib)
	c.Admission.MaxBatchMemory = &most
	require.EqualError(t, sizing{pool: 64*mib - 1}.check(c), "'admission::max_batch_memory' is 67108864 bytes and the memory"+
		" pool is 67108863, so such a batch could never be admitted: lower the one or raise the other")
	require.NoError(t, sizing{pool: 64 * mib}.check(c))
}

func TestWarningsOfASize(t *testing.T) {
	limited := machine{limit: gib, source: "cgroup_v2", chosen: true}
	for name, tt := range map[string]struct {
		size sizing
		want []string
	}{
		"none":                    {sizing{machine: limited, origin: "cgroup_v2", pool: gib / 2}, nil},
		"explicit and limited":    {sizing{machine: limited, origin: "explicit", pool: gib / 2}, nil},
		"explicit, no limit":      {sizing{machine: machine{limit: gib, source: "meminfo"}, origin: "explicit", pool: gib / 2}, nil},
		"explicit above":          {sizing{machine: limited, origin: "explicit", pool: 2 * gib}, []string{"The memory pool is larger than the memory limit; lower 'memory::pool_size'"}},
		"the whole machine":       {sizing{machine: machine{limit: gib, source: "meminfo"}, origin: "meminfo", pool: gib / 2}, []string{"No memory limit is set, so the pool was sized for the whole machine; limit the container or set 'memory::pool_size'"}},
		"a limit above it":        {sizing{machine: machine{limit: gib, source: "meminfo", chosen: true}, origin: "meminfo", pool: gib / 2}, nil},
		"nothing known":           {sizing{machine: machine{source: "fallback"}, origin: "fallback", pool: gib}, []string{"Nothing says how much memory there is; set 'memory::pool_size'"}},
		"too small while it runs": {sizing{machine: limited, origin: "cgroup_v2", pool: 20 * mib}, []string{"The memory pool is smaller than 32MiB; nearly everything will be refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			tt.size.warn(zap.New(core))
			var got []string
			for _, e := range logs.All() {
				require.Equal(t, zapcore.WarnLevel, e.Level)
				got = append(got, e.Message)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestFractionIsLoggedWithTwoDecimalsAtLeast(t *testing.T) {
	for fraction, want := range map[float64]string{0.5: "0.50", 0.75: "0.75", 0.333333: "0.333333", 1: "1.00"} {
		for _, f := range (sizing{fraction: fraction}).fields() {
			if f.Key == "fraction" {
				require.Equal(t, want, f.String)
			}
		}
	}
}
