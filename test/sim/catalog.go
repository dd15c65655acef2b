// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
)

const ms = time.Millisecond

// Usual is a pool with the defaults of the product.
func Usual() Pool {
	return Pool{Capacity: 512 * MiB, Slots: 1024, MaxQueued: 256, MaxQueuedBytes: 64 * MiB, QueueTimeout: time.Second}
}

// Flood is a client that wants more than there is.
func Flood(name string, weight float64, batch int64, workers int) Client {
	return Client{
		Name: name, Batch: batch, Items: 50, Workers: workers, Hold: 100 * ms,
		Limits: Limits{Weight: weight, Queued: 64},
	}
}

// Trickle is a client that wants next to nothing.
func Trickle(name string) Client {
	return Client{Name: name, Batch: 256 * KiB, Items: 10, Every: 20 * ms, Hold: 20 * ms, Limits: Limits{Queued: 64}}
}

// Times returns n clients like c.
func Times(n int, c Client) (all []Client) {
	for i := range n {
		c.Name = fmt.Sprint(i + 1)
		all = append(all, c)
	}
	return all
}

// Beside is one client beside others, from the first to the fifth second.
func Beside(name string, p Pool, one Client, others []Client, promises ...Promise) Scenario {
	return Scenario{
		Name: name, Pool: p, Clients: slices.Concat([]Client{one}, others), Promises: promises,
		Windows: []Window{{From: time.Second, To: 5 * time.Second}},
	}
}

// Shares are scenarios in which everybody gets what is fair.
func Shares() []Scenario {
	manySlots := Usual()
	manySlots.Slots = 8192
	longLine := manySlots
	longLine.MaxQueued, longLine.MaxQueuedBytes = 8192, 1024*MiB
	slow := Flood("80 KiB", 1, 80*KiB, 4000)
	slow.Hold = 400 * ms
	endless := Flood("80 KiB", 1, 80*KiB, 5000)
	endless.Limits.Queued = 0
	late := Flood("idle before", 1, MiB, 350)
	late.From = 3 * time.Second
	bursts := Client{
		Name: "bursts", Batch: MiB, Every: 250 * ms, Burst: 24, Hold: 100 * ms, Steady: true, Limits: Limits{Queued: 64},
	}
	few := Flood("32 slots", 1, MiB, 200)
	few.Limits.Slots = 32
	scenarios := []Scenario{
		{Name: "equal weights", Pool: Usual(), Clients: []Client{
			Flood("a", 1, MiB, 200), Flood("b", 1, MiB, 200), Flood("c", 1, MiB, 200), Flood("d", 1, MiB, 200),
		}},
		{Name: "unequal weights", Pool: Usual(), Clients: []Client{
			Flood("1", 1, MiB, 150), Flood("2", 2, MiB, 250), Flood("4", 4, MiB, 400),
		}},
		{Name: "different sizes", Pool: Usual(), Clients: []Client{
			Flood("8 MiB", 1, 8*MiB, 50), Flood("1 MiB", 1, MiB, 400),
		}},
		{Name: "very different sizes", Long: true, Pool: manySlots, Clients: []Client{
			Flood("8 MiB", 1, 8*MiB, 50), Flood("80 KiB", 1, 80*KiB, 4000),
		}},
		{Name: "different sizes and times", Long: true, Pool: manySlots, Clients: []Client{Flood("8 MiB", 1, 8*MiB, 50), slow}},
		{
			Name: "different sizes in a line that holds all", Long: true, Pool: longLine,
			Clients: []Client{Flood("8 MiB", 1, 8*MiB, 50), endless},
		},
		{Name: "bursts beside a flood", Pool: Usual(), Clients: []Client{Flood("flood", 1, MiB, 600), bursts}},
		{Name: "a flood beside a trickle", Pool: Usual(), Clients: []Client{Flood("flood", 1, MiB, 600), Trickle("trickle")}},
		{
			Name: "idle earns nothing", Pool: Usual(), Clients: []Client{Flood("busy", 1, MiB, 350), late},
			Windows: []Window{{From: 3500 * ms, To: 7 * time.Second}},
		},
		{Name: "too wide", Pool: Usual(), Clients: []Client{Flood("small", 1, MiB, 600), Flood("60 %", 1, 307*MiB, 2)}},
		{Name: "tiny batches are counted by slots", Pool: Usual(), Clients: []Client{
			Flood("tiny", 1, KiB, 600), Flood("a", 1, MiB, 300), Flood("b", 1, MiB, 300),
		}},
		{Name: "one wants less than its share", Pool: Usual(), Clients: []Client{
			Flood("a", 1, MiB, 300), Flood("b", 1, MiB, 300), Flood("little", 1, MiB, 50),
		}},
		{Name: "one may have less than its share", Pool: Usual(), Clients: []Client{Flood("a", 1, MiB, 600), few}},
		{
			Name: "weights and the pool change", Pool: Usual(),
			Clients: []Client{Flood("a", 1, MiB, 450), Flood("b", 1, MiB, 350)},
			Windows: []Window{
				{From: time.Second, To: 3 * time.Second},
				{From: 4 * time.Second, To: 6 * time.Second, Change: &Change{Weights: map[string]float64{"a": 3}}},
				{From: 7 * time.Second, To: 9 * time.Second, Change: &Change{Capacity: 256 * MiB}},
			},
		},
	}
	for i := range scenarios {
		scenarios[i].Promises = []Promise{Fair}
	}
	return scenarios
}

// Neighbors are scenarios in which somebody is no worse off for the others.
func Neighbors() (scenarios []Scenario) {
	for _, floods := range []int{1, 4, 8} {
		f := Flood("", 1, MiB, 2000/floods)
		for name, hold := range map[string]time.Duration{"quick": 20 * ms, "slow": 400 * ms} {
			f.Hold = hold
			s := Beside(fmt.Sprintf("light beside %d %s floods", floods, name), Usual(),
				Trickle("light"), Times(floods, f), Accepts("light", 0.999, 150), Fair)
			s.Long = hold < 100*ms
			scenarios = append(scenarios, s)
		}
	}
	f := Flood("", 1, MiB, 4)
	f.Limits.Stranger = true
	scenarios = append(scenarios,
		Beside("known beside 300 invented names", Usual(),
			Trickle("known"), Times(300, f), Accepts("known", 1, 150), FairToStrangersAsOne),
		Beside("300 invented names want the same", Usual(),
			Flood("known", 1, MiB, 400), Times(300, f), FairToStrangersAsOne),
		// 20 MiB fit into a share of 32 once, but are a third of what may wait in line.
		Beside("batches that are large for a share", Usual(),
			Client{Name: "honest", Batch: 20 * MiB, Workers: 1, Hold: 100 * ms, Limits: Limits{Queued: 64}},
			Times(15, Flood("", 1, MiB, 60)), Accepts("honest", 1, 5), Fair))

	// A batch larger than its account's share is let in when there is room, and nobody is held back for it.
	wide := Client{Name: "wide", Batch: 60 * MiB, Every: 250 * ms, Hold: 500 * ms, Limits: Limits{Queued: 64}}
	for percent, every := range map[int]time.Duration{78: 2 * ms, 98: 1600 * time.Microsecond} {
		busy := Times(8, Client{Batch: MiB, Every: every, Hold: 100 * ms, Limits: Limits{Queued: 64}})
		scenarios = append(scenarios, Beside(fmt.Sprintf("wide batches beside the %d %% busy", percent), Usual(),
			wide, busy, CostsOthers("wide", 0.02)))
	}
	return scenarios
}

// Gates are scenarios of what a pool has nothing to do with: rates and breakers. The offender's batches can
// never fit into what it may have of the pool, and breaker is the door's word for shutting it out.
func Gates(breaker string) []Scenario {
	limited := Flood("limited", 1, MiB, 200)
	limited.Limits.ItemsPerSecond = 20_000
	slower := Flood("slower", 2, MiB, 200)
	slower.Limits.ItemsPerSecond = 5000
	offender := Client{Name: "offender", Batch: 60 * MiB, Workers: 20, Hold: 100 * ms, Limits: Limits{Fraction: 0.1}}
	return []Scenario{
		{
			Name: "rates", Pool: Usual(), Clients: []Client{limited, slower, Flood("a", 1, MiB, 200), Flood("b", 2, MiB, 400)},
			Promises: []Promise{Fair, GetsItsRate("limited"), GetsItsRate("slower")},
		},
		{
			Name: "an offender", Pool: Usual(), Clients: []Client{offender, Flood("a", 1, MiB, 300), Trickle("light")},
			Promises: []Promise{Fair, Refuses("offender", breaker), Accepts("light", 1, 150)},
		},
	}
}
