// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"
)

// Scenario is clients that share a pool, and what they are promised in each window.
type Scenario struct {
	Name     string
	Pool     Pool
	Clients  []Client
	Windows  []Window // none: from the second to the sixth second
	Promises []Promise
	Long     bool // it takes seconds of real time
}

// Pool is what the clients share.
type Pool struct {
	Capacity       int64 // bytes
	Slots          int64
	MaxQueued      int64
	MaxQueuedBytes int64
	QueueTimeout   time.Duration
}

// Change is what the operator or the kernel does while the clients are at it.
type Change struct {
	Capacity int64              // of the pool; 0: as it was
	Weights  map[string]float64 // by the names of clients
}

// Promise checks what the clients got in a window.
type Promise func(t testing.TB, o Outcome)

// Outcome is what the clients of a pool got in a window.
type Outcome struct {
	Pool    Pool
	Clients []Client
	Results []Result // of each client
	// Without plays the same without a client, and returns what the others got.
	Without func(name string) []Result
}

// Play runs the scenario at a door and checks what it promises.
func Play(t *testing.T, s Scenario, open Opener) {
	t.Helper()
	for w, results := range simulate(t, &s, open) {
		o := Outcome{Results: results, Without: func(name string) []Result { return simulate(t, s.without(name), open)[w] }}
		o.Pool, o.Clients = s.at(w)
		o.log(t)
		for _, promise := range s.Promises {
			promise(t, o)
		}
	}
}

// PlayAll plays the scenarios in parallel, leaving out the long ones where that is asked for.
func PlayAll(t *testing.T, open Opener, quick bool, scenarios ...Scenario) {
	for _, s := range scenarios {
		if quick && s.Long {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			Play(t, s, open)
		})
	}
}

func (s *Scenario) windows() []Window {
	if len(s.Windows) == 0 {
		return []Window{{From: 2 * time.Second, To: 6 * time.Second}}
	}
	return s.Windows
}

// at returns the pool and the clients as they are in window w.
func (s *Scenario) at(w int) (Pool, []Client) {
	p, clients := s.Pool, slices.Clone(s.Clients)
	for _, window := range s.windows()[:w+1] {
		if window.Change == nil {
			continue
		}
		if c := window.Change.Capacity; c > 0 {
			p.MaxQueuedBytes = int64(float64(p.MaxQueuedBytes) / float64(p.Capacity) * float64(c))
			p.Capacity = c
		}
		for i := range clients {
			if weight, changes := window.Change.Weights[clients[i].Name]; changes {
				clients[i].Limits.Weight = weight
			}
		}
	}
	return p, clients
}

// without returns the scenario with nothing in this client's batches, so that all others have the same luck.
func (s Scenario) without(name string) *Scenario {
	s.Clients = slices.Clone(s.Clients)
	for i := range s.Clients {
		if s.Clients[i].Name == name {
			s.Clients[i].Batch = 0
		}
	}
	return &s
}

// log writes what the first clients got, and what they would of a benevolent power.
func (o *Outcome) log(t *testing.T) {
	fair := FairBytes(o.Pool, o.Clients)
	for i, c := range o.Clients[:min(len(o.Clients), 4)] {
		r := &o.Results[i]
		t.Logf("%-12s held %6.1f MiB, fair %6.1f (%+.1f %%), accepted %5d of %6d (%.2f %%), longest wait %v %v",
			c.Name, r.Held/MiB, fair[i]/MiB, 100*(r.Held/fair[i]-1),
			r.Accepted, r.Accepted+r.Refused, 100*r.Acceptance(), r.Longest, r.Why)
	}
}
