// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// tally counts answers by outcome.
type tally [pool.Closed + 1]atomic.Int64

func (c *tally) add(r pool.Result) pool.Outcome {
	c[r.Outcome].Add(1)
	return r.Outcome
}

// crowded is a pool in which nearly everybody has to wait, and nobody times out unless something is lost.
func crowded(workers int64) pool.Settings {
	return pool.Settings{
		Capacity: 100, Slots: 3, MaxQueued: workers, MaxQueuedBytes: 100 * workers, QueueTimeout: 10 * time.Second,
	}
}

// requireIdle finds a ledger of zeros and a pool that grants all of it.
func requireIdle(t *testing.T, p *pool.Pool, account *pool.Account, gate *pool.Gate) {
	t.Helper()
	before := p.Stats()
	require.Equal(t, pool.Stats{Capacity: before.Capacity, Slots: before.Slots, MaxQueued: before.MaxQueued}, before)
	held, used := p.AccountStats(account)
	require.Zero(t, [...]int64{held, used})
	bytes, passing, limit := p.GateStats(gate)
	require.Zero(t, [...]int64{bytes, passing})

	leases := make([]pool.Lease, limit)
	for i := range leases {
		r := pool.Request{Account: account, Gate: gate}
		if i == 0 {
			r.Bytes = before.Capacity
		}
		require.Equal(t, pool.Granted, p.Acquire(t.Context(), &leases[i], r).Outcome)
	}
	for i := range leases {
		leases[i].Release()
	}
	require.Equal(t, before, p.Stats())
}

// TestCancelAgainstGrant has everybody's wait cancelled by somebody who is about to release, or just has:
// the grant and the end of the context meet in every order. Whoever loses has to hand back what it got.
func TestCancelAgainstGrant(t *testing.T) {
	const workers = 5
	rounds := 1_000_000 / workers
	if testing.Short() {
		rounds /= 20
	}
	var (
		p       = pool.New(crowded(workers))
		account pool.Account
		gate    = pool.NewGate(2)
		cancels = make(chan context.CancelFunc, workers)
		answers tally
		all     sync.WaitGroup
	)
	for w := range workers {
		all.Go(func() {
			r := pool.Request{Account: &account, Bytes: int64(30 + 15*w)}
			if w%4 == 0 {
				r.Gate = gate
			}
			for i := range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				cancels <- cancel
				var l pool.Lease
				outcome := answers.add(p.Acquire(ctx, &l, r))
				// One for one: there is always somebody's to take.
				cancelOther := <-cancels
				if i%2 == 0 {
					cancelOther()
				}
				if outcome == pool.Granted {
					l.Release()
				}
				cancelOther()
				if outcome != pool.Granted && outcome != pool.Ended {
					return // something is lost, and each further wait would last for its whole timeout
				}
			}
		})
	}
	all.Wait()

	granted, ended := answers[pool.Granted].Load(), answers[pool.Ended].Load()
	require.EqualValues(t, workers*rounds, granted+ended, "everybody is granted or cancelled")
	require.Positive(t, granted)
	require.Positive(t, ended)
	requireIdle(t, p, &account, gate)
}

// TestEverythingAtOnce has leases grow, shrink, settle and end, twice and while they wait, under contexts
// that end and a pool that is resized.
func TestEverythingAtOnce(t *testing.T) {
	const workers = 8
	rounds := 10_000
	if testing.Short() {
		rounds /= 20
	}
	var (
		p       = pool.New(crowded(workers))
		account pool.Account
		gate    = pool.NewGate(2)
		answers tally
		all     sync.WaitGroup
	)
	for w := range workers {
		all.Go(func() {
			for i := range rounds {
				var l, part pool.Lease
				ctx, cancel := context.WithCancel(context.Background())
				r := pool.Request{Account: &account, Bytes: int64(10 + i%40), Provisional: i%3 == 0}
				if answers.add(p.Acquire(ctx, &l, r)) != pool.Granted {
					t.Errorf("nobody cancels this one")
				}
				var batch sync.WaitGroup
				batch.Go(func() { answers.add(l.Grow(ctx, int64(i%30))) })
				batch.Go(func() {
					answers.add(l.Settle(ctx, &part, pool.Request{Bytes: int64(i % 60), Gate: gate}))
					part.Release()
				})
				batch.Go(func() { answers.add(l.Grow(context.Background(), -5-int64(i%2*100))) })
				switch (i + w) % 3 {
				case 0:
					cancel()
				case 1:
					l.Release()
				case 2:
					p.Resize(pool.Size{Capacity: int64(80 + i%2*20), MaxQueued: 100 * workers})
				}
				if held := p.Stats().Held; held < 0 {
					t.Errorf("%d bytes held", held)
				}
				batch.Wait()
				l.Release()
				cancel()
			}
		})
	}
	all.Wait()

	for o, happened := range map[pool.Outcome]bool{
		pool.Granted: true, pool.Ended: true, pool.Released: true, pool.Closed: false, pool.LineFull: false,
	} {
		require.Equal(t, happened, answers[o].Load() > 0, "outcome %d", o)
	}
	requireIdle(t, p, &account, gate)
}

// goner is a context that ends without anybody being woken by it: whoever waits under it is granted first
// and sees then that it is too late.
type goner struct {
	context.Context
	gone atomic.Bool
	seen func() // when it is seen that it has gone
}

func (g *goner) Err() error {
	if !g.gone.Load() {
		return nil
	}
	if g.seen != nil {
		g.seen()
	}
	return context.Canceled
}

func TestWhatIsGrantedTooLateGoesToTheNext(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, p *pool.Pool, holder *pool.Lease, r pool.Request) pool.Result{
		"lease": func(ctx context.Context, p *pool.Pool, _ *pool.Lease, r pool.Request) pool.Result {
			return p.Acquire(ctx, new(pool.Lease), r)
		},
		"part": func(ctx context.Context, _ *pool.Pool, holder *pool.Lease, r pool.Request) pool.Result {
			r.Bytes += 50
			return holder.Settle(ctx, new(pool.Lease), r)
		},
		"growth": func(ctx context.Context, _ *pool.Pool, holder *pool.Lease, r pool.Request) pool.Result {
			return holder.Grow(ctx, r.Bytes)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var (
					p       = pool.New(small())
					account pool.Account
					gate    = pool.NewGate(1)
					late    = &goner{Context: t.Context()}
					tooLate = make(chan pool.Outcome, 1)
					answer  = make(chan pool.Outcome, 1)

					a, b, next pool.Lease
				)
				half := pool.Request{Account: &account, Bytes: 50}
				require.Equal(t, pool.Granted, p.Acquire(t.Context(), &a, half).Outcome)
				require.Equal(t, pool.Granted, p.Acquire(t.Context(), &b, half).Outcome)
				go func() {
					tooLate <- wait(late, p, &a, pool.Request{Account: &account, Gate: gate, Bytes: 10}).Outcome
				}()
				synctest.Wait()
				go func() { answer <- p.Acquire(t.Context(), &next, half).Outcome }()
				synctest.Wait()

				late.gone.Store(true)
				b.Release()
				require.Equal(t, pool.Ended, <-tooLate)
				require.Equal(t, pool.Granted, <-answer)
				a.Release()
				next.Release()
				requireIdle(t, p, &account, gate)
			})
		})
	}
}

func TestGrowthGrantedTooLateToALeaseThatHasShrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			p       = pool.New(small())
			account pool.Account
			a, b    pool.Lease
			answer  = make(chan pool.Outcome)
			half    = pool.Request{Account: &account, Bytes: 50}
			late    = &goner{Context: t.Context(), seen: func() { a.Grow(t.Context(), -55) }}
		)
		require.Equal(t, pool.Granted, p.Acquire(t.Context(), &a, half).Outcome)
		require.Equal(t, pool.Granted, p.Acquire(t.Context(), &b, half).Outcome)
		go func() { answer <- a.Grow(late, 10).Outcome }()
		synctest.Wait()
		late.gone.Store(true)
		b.Release()
		require.Equal(t, pool.Ended, <-answer)
		require.Zero(t, p.Stats().Held, "5 were left of the 10 to give back")
		a.Release()
	})
}
