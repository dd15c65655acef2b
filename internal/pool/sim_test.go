// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// This file is a simulator: clients, which are data, ask a door for room in virtual time. It knows nothing
// of a pool, so that it can run over everything that stands behind a door.

// door is what a batch has to pass.
type door interface {
	// admit returns how to give back what a batch of this client was given, or why it was refused.
	admit(ctx context.Context, c *client, bytes int64) (release func(), refusal string)
}

// client is one tenant. It is closed loop, each of its workers asking again when its batch is done, unless
// it says how often batches arrive.
type client struct {
	name   string
	party  limits
	batch  int64         // bytes of each
	hold   time.Duration // how long one is worked on, give or take a half
	steady bool          // no give or take, neither in this nor in arrivals
	// One of:
	workers int           // at once
	every   time.Duration // between arrivals, on average
	burst   int           // arrivals at once; 0 is 1

	retry time.Duration // how long a worker pauses when refused; 0 is 100 ms
	from  time.Duration // when it starts
}

// limits are what the operator says of a client.
type limits struct {
	weight        float64
	fraction      float64
	slots, queued int64
	stranger      bool
}

// got is what became of a client's batches in a window of time.
type got struct {
	held              float64 // bytes, on average
	busy              float64 // batches at once, on average
	accepted, refused int
	why               map[string]int
	longest           time.Duration // wait of one that was accepted
}

func (g *got) acceptance() float64 {
	return float64(g.accepted) / float64(max(1, g.accepted+g.refused))
}

// window is a part of the time that is looked at.
type window struct {
	from, to time.Duration
	change   func(door) // happens before it, at the end of the one before
}

// sim runs clients against a door.
type sim struct {
	door    door
	start   time.Time
	windows []window

	mu  sync.Mutex
	got [][]got // by window and client
}

// simulate runs the clients until the last window ends and returns what they got in each.
func simulate(t *testing.T, build func() door, clients []client, windows ...window) (results [][]got) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sim{door: build(), start: time.Now(), windows: windows, got: make([][]got, len(windows))}
		// Without a deadline, which would shorten the waits.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(windows[len(windows)-1].to, cancel)
		for w := range windows {
			s.got[w] = make([]got, len(clients))
			if f := windows[w].change; f != nil {
				time.AfterFunc(windows[w-1].to, func() { f(s.door) })
			}
		}
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { s.client(ctx, i, &clients[i]) })
		}
		all.Wait()
		results = s.got
	})
	return results
}

func (s *sim) client(ctx context.Context, i int, c *client) {
	var all sync.WaitGroup
	defer all.Wait()
	pause(ctx, c.from)
	for w := range c.workers {
		random := rand.New(rand.NewPCG(uint64(i), uint64(w)))
		all.Go(func() {
			pause(ctx, time.Duration(random.Int64N(int64(c.hold)))) // not in step
			for ctx.Err() == nil {
				if !s.batch(ctx, i, c, random.Float64()) {
					backoff := c.retry
					if backoff == 0 {
						backoff = 100 * time.Millisecond
					}
					pause(ctx, jittered(backoff, random.Float64()))
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(uint64(i), 0))
	for c.every > 0 && ctx.Err() == nil {
		for range max(1, c.burst) {
			luck := random.Float64()
			all.Go(func() { s.batch(ctx, i, c, luck) })
		}
		gap := float64(c.every)
		if !c.steady {
			gap *= random.ExpFloat64()
		}
		pause(ctx, time.Duration(gap))
	}
}

// batch asks for one, works on it, and reports whether it was accepted.
func (s *sim) batch(ctx context.Context, i int, c *client, luck float64) bool {
	asked := time.Since(s.start)
	release, refusal := s.door.admit(ctx, c, c.batch)
	if ctx.Err() != nil && release == nil {
		return false // the simulation has ended
	}
	admitted := time.Since(s.start)
	if release != nil {
		hold := jittered(c.hold, luck)
		if c.steady {
			hold = c.hold
		}
		pause(ctx, hold)
		release()
	}
	s.count(i, c, asked, admitted, time.Since(s.start), refusal)
	return release != nil
}

func (s *sim) count(i int, c *client, asked, admitted, released time.Duration, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, window := range s.windows {
		g := &s.got[w][i]
		if overlap := min(released, window.to) - max(admitted, window.from); overlap > 0 {
			part := overlap.Seconds() / (window.to - window.from).Seconds()
			g.held += float64(c.batch) * part
			g.busy += part
		}
		if asked < window.from || asked >= window.to {
			continue
		}
		if refusal == "" {
			g.accepted++
			g.longest = max(g.longest, admitted-asked)
			continue
		}
		g.refused++
		if g.why == nil {
			g.why = map[string]int{}
		}
		g.why[refusal]++
	}
}

// jittered is d give or take a half.
func jittered(d time.Duration, luck float64) time.Duration {
	return d/2 + time.Duration(luck*float64(d))
}

// pause lets virtual time pass.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
