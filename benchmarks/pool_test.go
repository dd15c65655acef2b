// SPDX-License-Identifier: Apache-2.0

// Package benchmarks compares with peers. It has a go.mod of its own, so that they are no dependency of
// the product.
package benchmarks

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otel-governor/otel-governor/internal/pool"
)

const weight = 1 << 10

// A peer is one pool that grants weight, up to a number of times at once. A worker of it acquires and
// releases once with each call.
type peer struct {
	name string
	new  func(places int64) (worker func() func())
}

var peers = []peer{
	{"pool", func(places int64) func() func() {
		p := pool.New(pool.Settings{
			Capacity: places * weight, Slots: 1 << 20,
			MaxQueued: 1 << 20, MaxQueuedBytes: 1 << 40, QueueTimeout: time.Hour,
		})
		return func() func() {
			// One account for each, as one tenant has; the lease is part of what its caller allocates for
			// a batch anyway.
			r := pool.Request{Account: new(pool.Account), Bytes: weight}
			l := new(pool.Lease)
			ctx := context.Background()
			return func() {
				*l = pool.Lease{}
				if res := p.Acquire(ctx, l, r); res.Outcome != pool.Granted {
					panic(res)
				}
				l.Release()
			}
		}
	}},
	{"xsync", func(places int64) func() func() {
		s := semaphore.NewWeighted(places * weight)
		return func() func() {
			ctx := context.Background()
			return func() {
				if err := s.Acquire(ctx, weight); err != nil {
					panic(err)
				}
				s.Release(weight)
			}
		}
	}},
}

func BenchmarkAcquireRelease(b *testing.B) {
	for _, p := range peers {
		b.Run("serial/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			work := p.new(1)()
			for b.Loop() {
				work()
			}
		})
	}
	// As many places as workers: nobody waits, but for the lock.
	for _, p := range peers {
		b.Run("parallel/"+p.name, func(b *testing.B) {
			b.ReportAllocs()
			worker := p.new(int64(runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for work := worker(); pb.Next(); {
					work()
				}
			})
		})
	}
}
