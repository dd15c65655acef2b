// SPDX-License-Identifier: Apache-2.0

// Package benchmarks compares with peers. It has a go.mod of its own, so that they are no dependency of
// the product.
package benchmarks

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otel-governor/otel-governor/internal/pool"
)

const weight = 1 << 10

// A peer is one pool that grants weight so many times at once, to workers that hold one at a time.
type peer struct {
	name string
	new  func(places int64) (worker func() (acquire, release func()))
}

var peers = []peer{
	{"pool", func(places int64) func() (acquire, release func()) {
		p := pool.New(pool.Settings{
			Capacity: places * weight, Slots: 1 << 20,
			MaxQueued: 1 << 20, MaxQueuedBytes: 1 << 40, QueueTimeout: time.Hour,
		})
		return func() (acquire, release func()) {
			// One account for each, as one tenant has; the lease is part of what its caller allocates for
			// a batch anyway.
			r := pool.Request{Account: new(pool.Account), Bytes: weight}
			l := new(pool.Lease)
			ctx := context.Background()
			acquire = func() {
				*l = pool.Lease{}
				if res := p.Acquire(ctx, l, r); res.Outcome != pool.Granted {
					panic(res)
				}
			}
			return acquire, func() { l.Release() }
		}
	}},
	{"xsync", func(places int64) func() (acquire, release func()) {
		s := semaphore.NewWeighted(places * weight)
		return func() (acquire, release func()) {
			ctx := context.Background()
			acquire = func() {
				if err := s.Acquire(ctx, weight); err != nil {
					panic(err)
				}
			}
			return acquire, func() { s.Release(weight) }
		}
	}},
	// The pool never waits for ever; neither does a user of the semaphore who needs what the pool gives.
	{"xsync_timeout", func(places int64) func() (acquire, release func()) {
		s := semaphore.NewWeighted(places * weight)
		return func() (acquire, release func()) {
			acquire = func() {
				if s.TryAcquire(weight) {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				if err := s.Acquire(ctx, weight); err != nil {
					panic(err)
				}
			}
			return acquire, func() { s.Release(weight) }
		}
	}},
}

func BenchmarkAcquireRelease(b *testing.B) {
	for _, p := range peers {
		b.Run("serial/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			acquire, release := p.new(1)()
			for b.Loop() {
				acquire()
				release()
			}
		})
	}
	// As many places as workers: nobody waits, but for the lock.
	for _, p := range peers {
		b.Run("parallel/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			worker := p.new(int64(runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for acquire, release := worker(); pb.Next(); {
					acquire()
					release()
				}
			})
		})
	}
	// Eight workers for each place, which let others run while they hold one: nearly everybody waits.
	for _, p := range peers {
		b.Run("contended/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			worker := p.new(int64(runtime.GOMAXPROCS(0)))
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for acquire, release := worker(); pb.Next(); {
					acquire()
					runtime.Gosched()
					release()
				}
			})
		})
	}
}
