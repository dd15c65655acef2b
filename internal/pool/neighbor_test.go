// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/test/sim"
)

const ms = time.Millisecond

// beside returns what one client gets beside others.
func beside(t *testing.T, p sim.Pool, one sim.Client, others ...sim.Client) (got sim.Result) {
	t.Helper()
	sim.Play(t, sim.Beside("", p, one, others, func(_ testing.TB, o sim.Outcome) { got = o.Results[0] }), openDoor)
	return got
}

// endlessLine is a pool of which everybody may wait.
func endlessLine() sim.Pool {
	p := sim.Usual()
	p.MaxQueued, p.MaxQueuedBytes = 8192, 8192*sim.MiB
	return p
}

// Sixteen names of tiny batches would take all slots and hardly a byte.
func TestNamesOfTinyBatchesGetTheirShareOfSlots(t *testing.T) {
	slots := func(_ testing.TB, o sim.Outcome) {
		for _, r := range o.Results[2:] { // of the slots, of which those of large batches cannot take theirs
			require.InEpsilon(t, 1024/17.06, r.Busy, 0.05)
		}
	}
	sim.Play(t, sim.Scenario{
		Pool: sim.Usual(),
		Clients: slices.Concat([]sim.Client{sim.Flood("a", 1, sim.MiB, 200), sim.Flood("b", 1, sim.MiB, 200)},
			sim.Times(16, sim.Flood("", 1, sim.KiB, 100))),
		Promises: []sim.Promise{sim.Fair, slots},
	}, openDoor)
}

// A neighbour waits for somebody to finish, however much those before it have in line.
func TestWaitBesideBlockersDoesNotScaleWithTheirBatches(t *testing.T) {
	const hold = 600 * ms
	longest := func(t *testing.T, tenants, batches int) time.Duration {
		blocker := sim.Client{Batch: sim.MiB, Workers: (512 + batches) / tenants, Hold: hold}
		neighbor := beside(t, endlessLine(), sim.Trickle("neighbor"), sim.Times(tenants, blocker)...)
		require.Zero(t, neighbor.Refused)
		return neighbor.Longest
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
	within := sim.Client{Name: "within", Batch: 200 * sim.MiB, Workers: 1, Hold: 100 * ms}
	for name, workers := range map[string]int{"a flood": 600, "a greater flood": 4000} {
		t.Run(name, func(t *testing.T) {
			flood := sim.Client{Name: "flood", Batch: sim.MiB, Workers: workers, Hold: hold, Steady: true}
			got := beside(t, endlessLine(), within, flood)
			require.Zero(t, got.Refused)
			require.Positive(t, got.Accepted)
			require.LessOrEqual(t, got.Longest, sim.Usual().QueueTimeout/2+hold)
		})
	}
}
