// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// TestAccountsAtOnce has batches of several accounts acquired, grown, settled for others, cancelled and
// released while limits and capacity change and the line overflows.
func TestAccountsAtOnce(t *testing.T) {
	const workers, operations = 8, 6 // of each round
	rounds := 1_000_000 / workers / operations
	if testing.Short() {
		rounds /= 20
	}
	settings := crowded(workers)
	settings.Slots, settings.MaxQueued = 4, 3
	var (
		p        = pool.New(settings)
		accounts = make([]*pool.Account, 6)
		limits   = []pool.Limits{{}, {Stranger: true}, {Weight: 3}, {Fraction: 0.6}, {Slots: 2}, {Queued: 1, Stranger: true}}
		gate     = pool.NewGate(2)
		leases   = make([][]*pool.Lease, workers)
		answers  tally
		all      sync.WaitGroup
	)
	for i := range accounts {
		accounts[i] = pool.NewAccount(limits[i])
	}
	for w := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			request := func() pool.Request {
				n := random.IntN(len(accounts))
				r := pool.Request{Account: accounts[n], Bytes: 10 + random.Int64N(50)}
				if random.IntN(3) == 0 {
					other := accounts[(n+1+random.IntN(len(accounts)-1))%len(accounts)]
					r.Others = []pool.Share{{Account: other, Bytes: random.Int64N(r.Bytes)}}
				}
				if random.IntN(4) == 0 {
					r.Gate = gate
				}
				return r
			}
			for i := range rounds {
				l, part := new(pool.Lease), new(pool.Lease)
				ctx, cancel := context.WithCancel(context.Background())
				capacity := 80 + random.Int64N(40)
				var batch sync.WaitGroup
				batch.Go(func() {
					switch i % 8 {
					case 0, 1, 2:
						cancel()
					case 3:
						p.Resize(pool.Size{Capacity: capacity, MaxQueued: 100 * workers})
					default:
						p.SetLimits(accounts[(i+w)%len(accounts)], limits[(i*w+i)%len(limits)])
					}
				})
				r, settled := request(), request()
				growth, less := random.Int64N(30), -random.Int64N(30)
				r.Provisional = i%2 == 0
				granted := answers.add(p.Acquire(ctx, l, r)) == pool.Granted
				if granted {
					batch.Go(func() { answers.add(l.Settle(ctx, part, settled)) })
					batch.Go(func() { answers.add(l.Grow(ctx, growth)) })
					answers.add(l.Grow(ctx, less))
				}
				if i%5 == 0 {
					l.Release()
				}
				batch.Wait()
				cancel()
				l.Release()
				if granted {
					part.Release()
				}
				leases[w] = []*pool.Lease{l, part}
			}
		})
	}
	all.Wait()

	for o, count := range outcomes {
		t.Logf("%d × %s", answers[o].Load(), count)
	}
	for _, o := range []pool.Outcome{
		pool.Granted, pool.Ended, pool.Released, pool.OverSlots, pool.OverBytes, pool.QueueFull, pool.LineFull,
	} {
		require.Positive(t, answers[o].Load(), outcomes[o])
	}
	require.Zero(t, answers[pool.Closed].Load())
	var last []*pool.Lease
	for _, l := range leases {
		last = append(last, l...)
	}
	require.NoError(t, p.Audit(accounts, last, nil))
	p.Resize(pool.Size{Capacity: 100, MaxQueued: 100 * workers})
	for _, a := range accounts {
		p.SetLimits(a, pool.Limits{})
		requireIdle(t, p, a, gate)
	}
}
