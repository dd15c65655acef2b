// SPDX-License-Identifier: Apache-2.0

// Package sim simulates clients in virtual time, for tests. A [Scenario] is data: clients, the pool that
// they share, and what it promises them. [Play] sends the clients to a [Door], which is all that the
// simulator knows of what it runs over: the same scenarios hold for the bare pool and for the whole governor.
// What clients get is compared with [FairBytes], which has nothing in common with how a pool divides.
//
// Batches hold no memory and work is a pause, so that a run takes the processor time of its decisions alone.
// Luck is seeded by a client's place in its scenario, but who of two comes first at the same moment is up to
// Go's scheduler: promises have margins.
package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Door is what a batch has to pass. Its methods are safe for concurrent use.
type Door interface {
	// Admit returns how to give back what a batch of c was given, or why it was refused.
	Admit(ctx context.Context, c *Client) (release func(), refusal string)
	// Change gives the pool another size, and the clients, which it knows by their names, other limits. Batches
	// are at work meanwhile.
	Change(p Pool, clients []Client)
}

// Opener opens a door to a pool for these clients, in virtual time.
type Opener func(t *testing.T, p Pool, clients []Client) Door

// Client is one tenant. It is closed loop, each of its workers asking again when its batch is done, unless
// it says how often batches arrive.
type Client struct {
	Name   string // unlike that of any other
	Limits Limits
	Batch  int64         // bytes of each
	Items  int64         // of each
	Hold   time.Duration // how long one is worked on, give or take a half
	Steady bool          // no give or take, neither in this nor in arrivals
	// One of:
	Workers int           // at once
	Every   time.Duration // between arrivals, on average
	Burst   int           // arrivals at once; 0 is 1

	Retry time.Duration // how long a worker pauses when refused; 0 is 100 ms
	From  time.Duration // when it starts
}

// Limits are what the operator says of a client. 0 is no limit, and of weights 1.
type Limits struct {
	Weight         float64
	Fraction       float64 // of the pool
	Slots, Queued  int64
	ItemsPerSecond float64
	Stranger       bool // the operator says nothing: anybody could have invented the name
}

// Result is what became of a client's batches in a window of time.
type Result struct {
	Held              float64 // bytes, on average
	Busy              float64 // batches at once, on average
	Accepted, Refused int
	Why               map[string]int
	Longest           time.Duration // wait of one that was accepted
}

// Acceptance is the part of the batches that were accepted.
func (r *Result) Acceptance() float64 {
	return float64(r.Accepted) / float64(max(1, r.Accepted+r.Refused))
}

// Window is a part of the time that is looked at.
type Window struct {
	From, To time.Duration
	Change   *Change // happens before it, at the end of the one before
}

// run is a simulation in progress.
type run struct {
	door    Door
	start   time.Time
	windows []Window

	mu      sync.Mutex
	results [][]Result // by window and client
}

// simulate runs the scenario's clients until its last window ends and returns what they got in each.
func simulate(t *testing.T, s *Scenario, open Opener) (results [][]Result) {
	t.Helper()
	windows := s.windows()
	synctest.Test(t, func(t *testing.T) {
		r := &run{door: open(t, s.Pool, s.Clients), start: time.Now(), windows: windows, results: make([][]Result, len(windows))}
		// Without a deadline, which would shorten the waits.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(windows[len(windows)-1].To, cancel)
		for w := range windows {
			r.results[w] = make([]Result, len(s.Clients))
			if windows[w].Change != nil {
				time.AfterFunc(windows[w-1].To, func() { r.door.Change(s.at(w)) })
			}
		}
		var all sync.WaitGroup
		for i := range s.Clients {
			all.Go(func() { r.client(ctx, i, &s.Clients[i]) })
		}
		all.Wait()
		results = r.results
	})
	return results
}

func (r *run) client(ctx context.Context, i int, c *Client) {
	var all sync.WaitGroup
	defer all.Wait()
	pause(ctx, c.From)
	for w := range c.Workers {
		random := rand.New(rand.NewPCG(uint64(i), uint64(w)))
		all.Go(func() {
			pause(ctx, time.Duration(random.Int64N(int64(c.Hold)))) // not in step
			for ctx.Err() == nil {
				if !r.batch(ctx, i, c, random.Float64()) {
					backoff := c.Retry
					if backoff == 0 {
						backoff = 100 * time.Millisecond
					}
					pause(ctx, jittered(backoff, random.Float64()))
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(uint64(i), 0))
	for c.Every > 0 && ctx.Err() == nil {
		for range max(1, c.Burst) {
			luck := random.Float64()
			all.Go(func() { r.batch(ctx, i, c, luck) })
		}
		gap := float64(c.Every)
		if !c.Steady {
			gap *= random.ExpFloat64()
		}
		pause(ctx, time.Duration(gap))
	}
}

// batch asks for one, works on it, and reports whether it was accepted.
func (r *run) batch(ctx context.Context, i int, c *Client, luck float64) bool {
	asked := time.Since(r.start)
	release, refusal := r.door.Admit(ctx, c)
	if ctx.Err() != nil && release == nil {
		return false // the simulation has ended
	}
	admitted := time.Since(r.start)
	if release != nil {
		hold := jittered(c.Hold, luck)
		if c.Steady {
			hold = c.Hold
		}
		pause(ctx, hold)
		release()
	}
	r.count(i, c, asked, admitted, time.Since(r.start), refusal)
	return release != nil
}

func (r *run) count(i int, c *Client, asked, admitted, released time.Duration, refusal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, window := range r.windows {
		g := &r.results[w][i]
		if overlap := min(released, window.To) - max(admitted, window.From); overlap > 0 && refusal == "" {
			part := overlap.Seconds() / (window.To - window.From).Seconds()
			g.Held += float64(c.Batch) * part
			g.Busy += part
		}
		if asked < window.From || asked >= window.To {
			continue
		}
		if refusal == "" {
			g.Accepted++
			g.Longest = max(g.Longest, admitted-asked)
			continue
		}
		g.Refused++
		if g.Why == nil {
			g.Why = map[string]int{}
		}
		g.Why[refusal]++
	}
}

// jittered is d give or take a half.
func jittered(d time.Duration, luck float64) time.Duration {
	return d/2 + time.Duration(luck*float64(d))
}

// pause lets virtual time pass. None passes without a timer: one that has expired before it is waited for
// has crashed the runtime of Go 1.26.8 in a synctest bubble under the race detector.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
