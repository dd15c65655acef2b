// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// weight is what each worker takes.
const weight = 1 << 10

// granter grants weight at most so many times at once, to workers that hold one at a time.
type granter func(ctx context.Context, places int) (worker func() (acquire, release func()))

func newPool(ctx context.Context, places int) func() (acquire, release func()) {
	p := pool.New(pool.Settings{
		Capacity: int64(places) * weight, Slots: 1 << 20,
		MaxQueued: 1 << 20, MaxQueuedBytes: 1 << 40, QueueTimeout: time.Hour,
	})
	return func() (acquire, release func()) {
		// One account for each, as one tenant has; the lease is part of what its caller allocates for a
		// batch anyway.
		r := pool.Request{Account: new(pool.Account), Bytes: weight}
		l := new(pool.Lease)
		acquire = func() {
			*l = pool.Lease{}
			if res := p.Acquire(ctx, l, r); res.Outcome != pool.Granted {
				panic(res)
			}
		}
		return acquire, func() { l.Release() }
	}
}

// refusePlace is the decision of a pool whose only place is taken and whose line takes nobody.
func refusePlace(b *testing.B) {
	p := pool.New(pool.Settings{Capacity: weight, Slots: 1})
	r := pool.Request{Account: new(pool.Account), Bytes: weight}
	p.Acquire(b.Context(), new(pool.Lease), r)
	l := new(pool.Lease)
	for b.Loop() {
		*l = pool.Lease{}
		if p.Acquire(b.Context(), l, r).Outcome != pool.NoSlot {
			panic("let in")
		}
	}
}

func newSemaphore(ctx context.Context, places int) func() (acquire, release func()) {
	s := semaphore.NewWeighted(int64(places) * weight)
	return func() (acquire, release func()) {
		acquire = func() {
			if err := s.Acquire(ctx, weight); err != nil {
				panic(err)
			}
		}
		return acquire, func() { s.Release(weight) }
	}
}

func newTimedSemaphore(ctx context.Context, places int) func() (acquire, release func()) {
	s := semaphore.NewWeighted(int64(places) * weight)
	return func() (acquire, release func()) {
		acquire = func() {
			if s.TryAcquire(weight) {
				return
			}
			timed, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if err := s.Acquire(timed, weight); err != nil {
				panic(err)
			}
		}
		return acquire, func() { s.Release(weight) }
	}
}

// serial is one worker.
func serial(g granter) func(*testing.B) {
	return func(b *testing.B) {
		acquire, release := g(b.Context(), 1)()
		for b.Loop() {
			acquire()
			release()
		}
	}
}

// parallel has as many places as workers: nobody waits, but for the lock.
func parallel(g granter) func(*testing.B) {
	return func(b *testing.B) {
		worker := g(b.Context(), runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for acquire, release := worker(); pb.Next(); {
				acquire()
				release()
			}
		})
	}
}

// contended has eight workers for each place, which let others run while they hold one: nearly everybody
// waits.
func contended(g granter) func(*testing.B) {
	return func(b *testing.B) {
		worker := g(b.Context(), runtime.GOMAXPROCS(0))
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for acquire, release := worker(); pb.Next(); {
				acquire()
				runtime.Gosched()
				release()
			}
		})
	}
}
