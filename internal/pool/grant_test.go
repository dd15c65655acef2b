// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkGrant is one release that lets the next one in, and another that joins the line, with so many
// accounts waiting. They hold shares of sixteen sizes; nobody sleeps, since it is the order that is
// measured and not the scheduler.
func BenchmarkGrant(b *testing.B) {
	for _, accounts := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(accounts), func(b *testing.B) {
			const batch, sizes = 64 << 10, 16
			p := New(Settings{
				Capacity: batch, Slots: 1 << 40, MaxQueued: 1 << 30, MaxQueuedBytes: 1 << 60, QueueTimeout: time.Hour,
			})
			all := make([]Account, accounts)
			var capacity int64 = batch
			for i := range all {
				bytes := int64(1+i%sizes) * batch
				p.Acquire(context.Background(), new(Lease), Request{Account: &all[i], Bytes: bytes, Debt: true})
				capacity += bytes
			}
			p.mu.capacity = capacity
			holder := new(Lease)
			p.Acquire(context.Background(), holder, Request{Account: &all[1], Bytes: batch})
			join := func(i int) *waiter {
				l := &Lease{pool: p, account: &all[i]}
				w := &waiter{lease: l, account: &all[i], slots: 1, bytes: batch - int64(i%7), answered: make(chan struct{})}
				p.enterLocked(w)
				return w
			}
			waiters := make([]*waiter, accounts)
			for i := range waiters {
				waiters[i] = join(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i += sizes {
				if i >= accounts {
					i = 0
				}
				holder.Release()
				if !waiters[i].done {
					b.Fatalf("not the turn of %d", i)
				}
				holder = waiters[i].lease
				waiters[i] = join(i)
			}
		})
	}
}
