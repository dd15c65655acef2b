// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	ms  = time.Millisecond
)

// poolDoor is a pool alone behind the door.
type poolDoor struct {
	pool     *pool.Pool
	accounts map[*client]*pool.Account
}

func (l limits) pool() pool.Limits {
	return pool.Limits{Weight: l.weight, Fraction: l.fraction, Slots: l.slots, Queued: l.queued, Stranger: l.stranger}
}

func newPoolDoor(s pool.Settings, clients []client) *poolDoor {
	d := &poolDoor{pool: pool.New(s), accounts: map[*client]*pool.Account{}}
	for i := range clients {
		d.accounts[&clients[i]] = pool.NewAccount(clients[i].party.pool())
	}
	return d
}

func (d *poolDoor) admit(ctx context.Context, c *client, bytes int64) (release func(), refusal string) {
	l := new(pool.Lease)
	res := d.pool.Acquire(ctx, l, pool.Request{Account: d.accounts[c], Bytes: bytes})
	if res.Outcome != pool.Granted {
		return nil, outcomes[res.Outcome]
	}
	return func() { l.Release() }, ""
}

// usual is a pool with the defaults of the product.
func usual() pool.Settings {
	return pool.Settings{
		Capacity: 512 * mib, Slots: 1024, MaxQueued: 256, MaxQueuedBytes: 64 * mib, QueueTimeout: time.Second,
	}
}

// flood is a client that wants more than there is.
func flood(name string, weight float64, batch int64, workers int) client {
	return client{
		name: name, batch: batch, workers: workers, hold: 100 * ms,
		party: limits{weight: weight, queued: 64},
	}
}

func trickle(name string) client {
	return client{name: name, batch: 256 * kib, every: 20 * ms, hold: 20 * ms, party: limits{queued: 64}}
}

// TestSharesAgainstMaxMin compares what clients hold on average with what they would if shares were divided
// by somebody who knows all.
func TestSharesAgainstMaxMin(t *testing.T) {
	manySlots := usual()
	manySlots.Slots = 8192
	longLine := manySlots
	longLine.MaxQueued, longLine.MaxQueuedBytes = 8192, 1024*mib
	endless := flood("80 KiB", 1, 80*kib, 5000)
	endless.party.queued = 0
	late := flood("idle before", 1, mib, 400)
	late.from = 5 * time.Second
	steady := []window{{from: 3 * time.Second, to: 8 * time.Second}}
	for name, test := range map[string]struct {
		settings pool.Settings
		clients  []client
		windows  []window
		within   float64 // of the reference; 0 is 5 %
	}{
		"equal weights": {usual(), []client{
			flood("a", 1, mib, 200), flood("b", 1, mib, 200), flood("c", 1, mib, 200), flood("d", 1, mib, 200),
		}, steady, 0},
		"unequal weights": {usual(), []client{
			flood("1", 1, mib, 150), flood("2", 2, mib, 250), flood("4", 4, mib, 400),
		}, steady, 0},
		"different sizes": {manySlots, []client{
			flood("8 MiB", 1, 8*mib, 50), flood("80 KiB", 1, 80*kib, 4000),
		}, steady, 0},
		"different sizes and times": {manySlots, []client{
			flood("8 MiB", 1, 8*mib, 50), {
				name: "80 KiB", batch: 80 * kib, workers: 4000, hold: 400 * ms, party: limits{queued: 64},
			},
		}, steady, 0},
		"different sizes in a line that holds all": {longLine, []client{flood("8 MiB", 1, 8*mib, 50), endless}, steady, 0},
		"bursts beside a flood": {usual(), []client{
			flood("flood", 1, mib, 600), {
				name: "bursts", batch: mib, every: 250 * ms, burst: 24, hold: 100 * ms, steady: true,
				party: limits{queued: 64},
			},
		}, steady, 0},
		"a flood beside a trickle": {usual(), []client{flood("flood", 1, mib, 600), trickle("trickle")}, steady, 0},
		"idle earns nothing": {
			usual(),
			[]client{flood("busy", 1, mib, 400), late},
			[]window{{from: 5500 * ms, to: 10 * time.Second}},
			0,
		},
		"too wide": {usual(), []client{flood("small", 1, mib, 600), flood("60 %", 1, 307*mib, 2)}, steady, 0},
		"tiny batches are counted by slots": {usual(), []client{
			flood("tiny", 1, kib, 600), flood("a", 1, mib, 400), flood("b", 1, mib, 400),
		}, steady, 0},
		"one wants less than its share": {usual(), []client{
			flood("a", 1, mib, 400), flood("b", 1, mib, 400), flood("little", 1, mib, 50),
		}, steady, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(test.clients) == 2 && test.clients[1].workers > 1000 {
				t.Skip("thousands of clients take long")
			}
			results := simulate(t, func() door { return newPoolDoor(test.settings, test.clients) }, test.clients, test.windows...)
			requireFair(t, test.settings, test.clients, results[0], test.within)
		})
	}
}

// requireFair finds everybody within this part of the reference, or one batch.
func requireFair(t *testing.T, s pool.Settings, clients []client, results []got, within float64) {
	t.Helper()
	if within == 0 {
		within = 0.05
	}
	fair := fairBytes(float64(s.Capacity), float64(s.Slots), clients)
	for i, c := range clients {
		g := results[i]
		t.Logf("%-12s held %6.1f MiB, fair %6.1f (%+.1f %%), accepted %5d of %6d (%.2f %%), longest wait %v %v",
			c.name, g.held/mib, fair[i]/mib, 100*(g.held/fair[i]-1),
			g.accepted, g.accepted+g.refused, 100*g.acceptance(), g.longest, g.why)
	}
	for i, c := range clients {
		margin := within * fair[i]
		if fair[i] < 20*float64(c.batch) {
			margin = max(margin, float64(c.batch))
		}
		require.LessOrEqual(t, math.Abs(results[i].held-fair[i]), margin, fmt.Sprintf("%s: %+v", c.name, results[i]))
	}
}

// TestSharesFollowChanges changes weights and the size of the pool while all are at it.
func TestSharesFollowChanges(t *testing.T) {
	clients := []client{flood("a", 1, mib, 500), flood("b", 1, mib, 500)}
	changed := []client{flood("a", 3, mib, 500), flood("b", 1, mib, 500)}
	windows := []window{
		{from: 2 * time.Second, to: 5 * time.Second},
		{from: 6 * time.Second, to: 9 * time.Second, change: func(d door) {
			d.(*poolDoor).pool.SetLimits(d.(*poolDoor).accounts[&clients[0]], changed[0].party.pool())
		}},
		{from: 10 * time.Second, to: 13 * time.Second, change: func(d door) {
			d.(*poolDoor).pool.Resize(256*mib, 32*mib)
		}},
	}
	smaller := usual()
	smaller.Capacity = 256 * mib
	results := simulate(t, func() door { return newPoolDoor(usual(), clients) }, clients, windows...)
	requireFair(t, usual(), clients, results[0], 0)
	requireFair(t, usual(), changed, results[1], 0)
	requireFair(t, smaller, changed, results[2], 0)
}
