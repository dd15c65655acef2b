// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// BenchmarkPool is the cost of one acquire and release; package benchmarks compares it with peers.
func BenchmarkPool(b *testing.B) {
	for _, bench := range []struct {
		name    string
		places  int
		workers int // for each place
	}{
		{"serial", 1, 0},
		{"parallel", runtime.GOMAXPROCS(0), 1},
		{"contended", runtime.GOMAXPROCS(0), 8}, // nearly everybody waits
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			const size, many = 1 << 10, 1 << 20
			p := pool.New(pool.Settings{
				Capacity: int64(bench.places) * size, Slots: many,
				MaxQueued: many, MaxQueuedBytes: many * size, QueueTimeout: time.Hour,
			})
			work := func(next func() bool) {
				r := pool.Request{Account: new(pool.Account), Bytes: size}
				for l := new(pool.Lease); next(); *l = (pool.Lease{}) {
					if res := p.Acquire(b.Context(), l, r); res.Outcome != pool.Granted {
						b.Errorf("%+v", res)
						return
					}
					if bench.workers > 1 {
						runtime.Gosched()
					}
					l.Release()
				}
			}
			if bench.workers == 0 {
				work(b.Loop)
				return
			}
			b.SetParallelism(bench.workers)
			b.RunParallel(func(pb *testing.PB) { work(pb.Next) })
		})
	}
}
