// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// between returns how many of times are in [from, to).
func between(times []int, from, to int) (n int) {
	for _, at := range times {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// worlds runs a story in many worlds that differ in what is left to chance.
func worlds(t *testing.T, story func(*testing.T, uint64)) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { story(t, seed) })
	}
}

// sendsAll is the rate of an exporter that nothing keeps waiting.
const sendsAll = 1e6

func TestExporterBackAfterAnOutage(t *testing.T) {
	for _, tt := range []struct {
		name    string
		tenants int
		every   int     // milliseconds between the batches of a client, refused or not
		rate    float64 // MiB per second, once it is back
	}{
		{"one tenant, stopped by its own ceiling", 1, 100, 100},
		{"one tenant that comes back once a second", 1, 1000, 100},
		{"one tenant, the queue is empty at once", 1, 100, sendsAll},
		{"one tenant, the queue empties slowly", 1, 100, 20},
		{"many tenants, stopped by what the others left", 8, 100, 100},
		{"many tenants, the queue is empty at once", 8, 100, sendsAll},
	} {
		t.Run(tt.name, func(t *testing.T) {
			worlds(t, func(t *testing.T, seed uint64) {
				exporter := &simExporter{}
				var tenants []*simTenant
				for range tt.tenants {
					tenants = append(tenants, &simTenant{ceiling: simPool / 2, batch: mib, every: tt.every, exporter: exporter})
				}
				w := newWorld(t, seed, tenants...)
				outage := 10_000
				if tt.every == 1000 {
					outage = 80_000
				}
				w.run(outage)
				for _, o := range tenants {
					require.NotZero(t, between(o.refused, outage-2000, outage), "the outage was felt")
				}
				exporter.rate = tt.rate
				empty := 0
				w.each = func() {
					if empty == 0 && len(exporter.queue) == 0 {
						empty = w.at
					}
				}
				w.run(outage + 20_000)
				require.NotZero(t, empty)
				for _, o := range tenants {
					require.NotZero(t, between(o.accepted, outage, empty+2000), "accepted again")
					require.Zero(t, between(o.refused, empty+2000, w.at), "and for good")
				}
			})
		})
	}
}

func TestMemoryThatIsNobodysRefusesNobody(t *testing.T) {
	worlds(t, func(t *testing.T, seed uint64) {
		healthy := &simExporter{rate: sendsAll}
		var tenants []*simTenant
		for range 4 {
			tenants = append(tenants, &simTenant{ceiling: simPool / 2, batch: mib, every: 20, exporter: healthy})
		}
		w := newWorld(t, seed, tenants...)
		w.run(5000)
		w.unowned += 60 * mib
		w.fresh += 60 * mib
		w.run(20_000)
		for _, o := range tenants {
			require.Empty(t, o.refused)
		}
		require.InDelta(t, 60*mib, w.books.Stats().Unowned, 5*mib)
		room, _ := w.books.Room()
		require.InDelta(t, w.books.mu.size.Budget-60*mib, room, 5*mib)
	})
}

func TestDeadExporterBesideAHealthyOne(t *testing.T) {
	for _, every := range []int{10, 50} { // up to 100 MiB per second
		t.Run(fmt.Sprint("a batch every ", every, " ms"), func(t *testing.T) {
			worlds(t, func(t *testing.T, seed uint64) {
				healthy := &simTenant{ceiling: simPool / 2, batch: mib, every: 25, exporter: &simExporter{rate: 80}}
				dead := &simTenant{ceiling: simPool / 2, batch: mib, every: every, exporter: &simExporter{}}
				w := newWorld(t, seed, healthy, dead)
				w.unowned = 20 * mib
				var most int64
				w.each = func() { most = max(most, dead.alive) }
				w.run(20_000)
				require.Empty(t, healthy.refused)
				require.NotEmpty(t, dead.refused)
				require.LessOrEqual(t, most, dead.ceiling+dead.batch)
			})
		})
	}
}

// What an exporter sends at half of what is offered is accepted all the time, and the rest is refused all the time:
// in any second between a fifth and four fifths of what is offered, never nothing for 0.8 s, and in ten seconds half,
// give or take a tenth. Collections come every two seconds here: by them alone the door would be open for one and shut for
// the next.
func TestExporterAtHalfTheRateAcceptsSteadily(t *testing.T) {
	for _, every := range []int{25, 100} {
		t.Run(fmt.Sprint("a batch every ", every, " ms"), func(t *testing.T) {
			worlds(t, func(t *testing.T, seed uint64) {
				offered := 1000 / every
				half := &simExporter{rate: float64(offered) / 2}
				o := &simTenant{ceiling: simPool / 2, batch: mib, every: every, exporter: half}
				w := newWorld(t, seed, o)
				w.unowned = 20 * mib
				var most int64
				w.each = func() { most = max(most, o.alive) }
				w.run(60_000)
				require.LessOrEqual(t, most, o.ceiling+o.batch)
				var seconds []int
				for at := 20_000; at < 60_000; at += 1000 {
					seconds = append(seconds, between(o.accepted, at, at+1000))
				}
				t.Log(seconds)
				longest := 0
				for i, at := range o.accepted {
					if at >= 20_000 {
						longest = max(longest, at-o.accepted[i-1])
					}
				}
				require.Less(t, longest, 800)
				require.GreaterOrEqual(t, slices.Min(seconds), offered/5)
				require.LessOrEqual(t, slices.Max(seconds), offered*4/5)
				for at := 20_000; at <= 50_000; at += 1000 {
					require.InEpsilon(t, offered*5, between(o.accepted, at, at+10_000), 0.1)
				}
			})
		})
	}
}

func TestQueueThatChangesItsOwner(t *testing.T) {
	worlds(t, func(t *testing.T, seed uint64) {
		slow := &simExporter{}
		before := &simTenant{ceiling: simPool / 2, batch: mib, every: 40, exporter: slow}
		after := &simTenant{ceiling: simPool / 2, batch: mib, exporter: slow}
		w := newWorld(t, seed, before, after)
		w.run(1400) // some 35 MiB
		slow.rate = 20
		before.every, after.every, after.next = 0, 50, w.at
		var verdict, checked int
		w.each = func() {
			if w.books.Stats().LastGC.Equal(w.now()) {
				verdict = w.at + 200 // is in by then
			}
			if verdict > 1400 && w.at == verdict {
				checked++
				for _, o := range w.tenants {
					// What left the queue since the mark is not known yet: 20 MiB per second for 0.2 s.
					require.InDelta(t, o.alive-o.held, o.carried, 4*mib, "at %d", w.at)
				}
			}
		}
		w.run(6000)
		require.NotZero(t, checked)
		require.Zero(t, before.alive)
		require.Zero(t, before.carried)
		require.NotZero(t, after.alive)
	})
}

// An exporter that has emptied its queue fast stops, beside another that has for long and what is nobody's.
func TestExporterThatStopsAtOnce(t *testing.T) {
	worlds(t, func(t *testing.T, seed uint64) {
		dead := &simTenant{ceiling: simPool / 2, batch: mib, every: 20, exporter: &simExporter{}}
		stops := &simTenant{ceiling: simPool / 2, batch: mib, every: 10, exporter: &simExporter{rate: sendsAll}}
		w := newWorld(t, seed, dead, stops)
		w.unowned = 60 * mib
		w.run(8000 + int(seed)*100)
		require.Empty(t, stops.refused)
		stops.exporter.rate = 0
		w.run(20_000)
		t.Log("most alive:", w.most/mib, "MiB")
		require.Less(t, w.most, w.books.mu.size.Critical)
	})
}
