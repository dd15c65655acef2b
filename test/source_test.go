// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// source sends batches of traces of one tenant until it is stopped, and counts the answers.
type source struct {
	client tenant
	weight int    // of each batch
	stop   func() // and waits for the answers

	mu       sync.Mutex
	sent     int
	accepted []string // the ids
	refused  map[string]int
	untyped  int
}

// tally is what a source has done.
type tally struct {
	sent, accepted int
	refused        map[string]int // by reason, or by what was said where there is none
	untyped        int            // these
}

// startSource has so many clients of one tenant send as fast as they are answered. As stock exporters do, they
// wait after a refusal for as long as they are told, or a while if they are not.
func startSource(t *testing.T, client tenant, weight, clients int) *source {
	t.Helper()
	return begin(t, client, weight, func(ctx context.Context, send func() time.Duration) {
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for ctx.Err() == nil {
					pause(ctx, send())
				}
			})
		}
		all.Wait()
	})
}

// startPaced has one tenant send a batch each time an interval has passed, whatever became of the ones before.
func startPaced(t *testing.T, client tenant, weight int, every time.Duration) *source {
	t.Helper()
	return begin(t, client, weight, func(ctx context.Context, send func() time.Duration) {
		var all sync.WaitGroup
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				all.Go(func() { send() })
			case <-ctx.Done():
				all.Wait()
				return
			}
		}
	})
}

// begin runs send again and again, which sends a batch and returns how long its client waits then.
func begin(t *testing.T, client tenant, weight int, run func(ctx context.Context, send func() time.Duration)) *source {
	t.Helper()
	conn, err := client.dial()
	if err != nil {
		t.Fatal(err)
	}
	s := &source{client: client, weight: weight, refused: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx, func() time.Duration {
			id := s.next()
			err := traces.send(client.context(), conn, client.request(traces, one(id, weight)))
			a := answer{status: status.Convert(err)}
			s.answered(id, a)
			delay, told := a.delay()
			if err != nil && !told {
				return time.Second
			}
			return delay
		})
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		conn.Close()
	})
	t.Cleanup(s.stop)
	return s
}

func (s *source) next() (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	return fmt.Sprint(s.client.name, "-", s.sent)
}

func (s *source) answered(id string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch reason := a.reason(); {
	case a.status.Code() == codes.OK:
		s.accepted = append(s.accepted, id)
	case reason != "":
		s.refused[reason]++
	default:
		s.untyped++
		s.refused[a.status.Code().String()+": "+a.status.Message()]++
	}
}

// tally returns what s has done so far.
func (s *source) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tally{s.sent, len(s.accepted), maps.Clone(s.refused), s.untyped}
}

// ids returns the items that were accepted so far.
func (s *source) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// since returns what was done after an earlier tally.
func (t tally) since(before tally) tally {
	refused := map[string]int{}
	for reason, n := range t.refused {
		if n -= before.refused[reason]; n > 0 {
			refused[reason] = n
		}
	}
	return tally{t.sent - before.sent, t.accepted - before.accepted, refused, t.untyped - before.untyped}
}

func (t tally) String() string {
	return fmt.Sprintf("%5d of %5d accepted, refused %v", t.accepted, t.sent, t.refused)
}

// pause waits, unless ctx ends before. No time is no wait.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
