// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// beside runs one client beside others and returns what it got, and they.
func beside(t *testing.T, s pool.Settings, one client, others ...client) (got, []got) {
	t.Helper()
	clients := slices.Concat([]client{one}, others)
	results := simulate(t, func() door { return newPoolDoor(s, clients) }, clients,
		window{from: time.Second, to: 6 * time.Second})[0]
	for i, c := range clients[:min(len(clients), 3)] {
		g := results[i]
		t.Logf("%-10s held %6.1f MiB, accepted %5d of %6d (%.2f %%), longest wait %v %v",
			c.name, g.held/mib, g.accepted, g.accepted+g.refused, 100*g.acceptance(), g.longest, g.why)
	}
	return results[0], results[1:]
}

// times returns n clients like c.
func times(n int, c client) (all []client) {
	for i := range n {
		c.name = fmt.Sprint(i + 1)
		all = append(all, c)
	}
	return all
}

func acceptance(all []got) float64 {
	var sum got
	for _, g := range all {
		sum.accepted += g.accepted
		sum.refused += g.refused
	}
	return sum.acceptance()
}

func TestLightTenantBesideFloods(t *testing.T) {
	for _, floods := range []int{1, 4, 8} {
		for name, hold := range map[string]time.Duration{"quick": 20 * ms, "slow": 400 * ms} {
			t.Run(fmt.Sprint(floods, " ", name), func(t *testing.T) {
				if testing.Short() && hold < 100*ms {
					t.Skip("so many batches take long")
				}
				f := flood("", 1, mib, 2000/floods)
				f.hold = hold
				light, _ := beside(t, usual(), trickle("light"), times(floods, f)...)
				require.GreaterOrEqual(t, light.acceptance(), 0.999)
			})
		}
	}
}

func TestKnownTenantBeside300InventedNames(t *testing.T) {
	f := flood("", 1, mib, 8)
	f.party.stranger = true
	known, strangers := beside(t, usual(), trickle("known"), times(300, f)...)
	require.Zero(t, known.refused)
	require.Positive(t, acceptance(strangers))

	t.Run("that want the same", func(t *testing.T) {
		clients := slices.Concat([]client{flood("known", 1, mib, 600)}, times(300, f))
		results := simulate(t, func() door { return newPoolDoor(usual(), clients) }, clients,
			window{from: 2 * time.Second, to: 7 * time.Second})[0]
		var all float64
		for _, g := range results[1:] {
			all += g.held
		}
		require.InEpsilon(t, 256, results[0].held/mib, 0.05)
		require.InEpsilon(t, 256, all/mib, 0.05, "all of them have the share of one")
	})
}

// A batch larger than its account's share is let in when there is room, and nobody is held back for it.
func TestWideBatchesCostBusyTenantsLittle(t *testing.T) {
	wide := client{name: "wide", batch: 60 * mib, every: 250 * ms, hold: 500 * ms, party: limits{queued: 64}}
	nobody := wide
	nobody.batch = 0
	for name, every := range map[string]time.Duration{"78 % busy": 2 * ms, "98 % busy": 1600 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			busy := times(8, client{batch: mib, every: every, hold: 100 * ms, party: limits{queued: 64}})
			_, with := beside(t, usual(), wide, busy...)
			_, without := beside(t, usual(), nobody, busy...)
			t.Logf("the busy ones are accepted %.2f %%, and %.2f %% without it", 100*acceptance(with), 100*acceptance(without))
			require.GreaterOrEqual(t, acceptance(with), acceptance(without)-0.02)
		})
	}
}

// 20 MiB fit into a share of 32 once, but are a third of what may wait in line.
func TestTenantWhoseBatchesAreLargeForItsShareIsServed(t *testing.T) {
	honest := client{name: "honest", batch: 20 * mib, workers: 1, hold: 100 * ms, party: limits{queued: 64}}
	got, _ := beside(t, usual(), honest, times(15, flood("", 1, mib, 100))...)
	require.Zero(t, got.refused)
	require.GreaterOrEqual(t, got.accepted, 5)
}

// Sixteen names of tiny batches would take all slots and hardly a byte.
func TestNamesOfTinyBatchesGetTheirShareOfSlots(t *testing.T) {
	clients := slices.Concat(
		[]client{flood("a", 1, mib, 200), flood("b", 1, mib, 200)}, times(16, flood("", 1, kib, 100)))
	results := simulate(t, func() door { return newPoolDoor(usual(), clients) }, clients,
		window{from: 3 * time.Second, to: 8 * time.Second})[0]
	requireFair(t, usual(), clients, results, 0)
	for _, g := range results[2:] { // of the slots, of which those of large batches cannot take theirs
		require.InEpsilon(t, 1024/17.06, g.busy, 0.05)
	}
}

// A neighbour waits for somebody to finish, however much those before it have in line.
func TestWaitBesideBlockersDoesNotScaleWithTheirBatches(t *testing.T) {
	const hold = 600 * ms
	longest := func(t *testing.T, tenants, batches int) time.Duration {
		s := usual()
		s.MaxQueued, s.MaxQueuedBytes = 8192, 8192*mib
		blocker := client{batch: mib, workers: (512 + batches) / tenants, hold: hold}
		neighbor, _ := beside(t, s, trickle("neighbor"), times(tenants, blocker)...)
		require.Zero(t, neighbor.refused)
		return neighbor.longest
	}
	for _, tenants := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			few, many := longest(t, tenants, 64), longest(t, tenants, 4096)
			require.LessOrEqual(t, many, 2*few+10*ms)
		})
	}
}

// Whoever stays within its share waits for half of its time until others are held back for it, and then
// for those that hold more than theirs to finish.
func TestWithinItsShareNobodyStarves(t *testing.T) {
	const hold = 400 * ms
	within := client{name: "within", batch: 200 * mib, workers: 1, hold: 100 * ms}
	for name, workers := range map[string]int{"a flood": 600, "a greater flood": 4000} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.MaxQueued, s.MaxQueuedBytes = 8192, 8192*mib
			got, _ := beside(t, s, within, client{name: "flood", batch: mib, workers: workers, hold: hold, steady: true})
			require.Zero(t, got.refused)
			require.Positive(t, got.accepted)
			require.LessOrEqual(t, got.longest, s.QueueTimeout/2+hold)
		})
	}
}
