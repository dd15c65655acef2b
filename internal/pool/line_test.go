// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

func TestArrivalsAtOnceFillTheLineAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(pool.Settings{
			Capacity: 100, Slots: 1, MaxQueued: 4, MaxQueuedBytes: 100, QueueTimeout: time.Second,
		})
		var (
			account pool.Account
			holder  pool.Lease
			barrier = make(chan struct{})
			answers = make(chan pool.Result, 32)
		)
		require.Equal(t, pool.Granted, p.Acquire(t.Context(), &holder, pool.Request{Account: &account}).Outcome)
		for range cap(answers) {
			go func() {
				<-barrier
				var l pool.Lease
				answers <- p.Acquire(t.Context(), &l, pool.Request{Account: &account, Bytes: 1})
				l.Release()
			}()
		}
		close(barrier)
		synctest.Wait()
		require.Len(t, answers, 28)
		for range len(answers) {
			require.Equal(t, pool.Result{Outcome: pool.LineFull, Observed: 4, Limit: 4}, <-answers)
		}
		require.EqualValues(t, 4, p.Stats().Queued)

		holder.Release()
		synctest.Wait()
		require.Len(t, answers, 4)
		for range len(answers) {
			require.Equal(t, pool.Result{Outcome: pool.Granted}, <-answers)
		}
		require.Equal(t, pool.Stats{Capacity: 100, Slots: 1, MaxQueued: 4}, p.Stats())
	})
}

func TestLine(t *testing.T) {
	oneSlot, noLine, fewBytes := small(), small(), small()
	oneSlot.Slots = 1
	noLine.Slots, noLine.MaxQueued = 2, 0
	fewBytes.MaxQueuedBytes = 50

	for name, test := range map[string]struct {
		settings pool.Settings
		story    string
	}{
		"waiting for a slot ends with the timeout": {oneSlot, `
			A acquire 10   | A granted
			B acquire 10   |
			pass 199ms     |
			pass 1ms       | B NoSlot 200/200 after 200ms
			= held 10 used 1 queued 0 growing 0`},
		"first come, first served": {oneSlot, `
			A acquire 10   | A granted
			B acquire 10   |
			pass 10ms      |
			C acquire 10   |
			pass 10ms      |
			A release      | B granted after 20ms
			B release      | C granted after 10ms`},
		"whoever disconnects leaves at once and the others move up": {oneSlot, `
			A acquire 10   | A granted
			B acquire 10   |
			C acquire 10   |
			pass 10ms      |
			B leave        | B Ended after 10ms
			= held 10 used 1 queued 1 growing 0
			A release      | C granted after 10ms`},
		"whoever leaves the head lets those by that it held back": {small(), `
			A acquire 60   | A granted
			B acquire 50   |
			C acquire 40   |
			B leave        | B Ended, C granted`},
		"whoever times out at the head lets those by that it held back": {small(), `
			A acquire 60   | A granted
			B acquire 50   |
			pass 10ms      |
			C acquire 40   |
			pass 190ms     | B NoBytes 50/100 after 200ms, C granted after 190ms`},
		"whoever goes away while running keeps slot and bytes until released": {oneSlot, `
			A acquire 60   | A granted
			A leave        |
			B acquire 50   |
			= held 60 used 1 queued 1 growing 0
			pass 10ms      |
			A release      | B granted after 10ms`},
		"one that would fit alone waits for bytes that another holds": {small(), `
			A acquire 80   | A granted
			B acquire 30   |
			pass 200ms     | B NoBytes 30/100 after 200ms
			A release      |
			b acquire 30   | b granted`},
		"larger than the pool can never fit": {small(), `
			A acquire 101  | A TooLarge 101/100
			B acquire 100  | B granted`},
		"without a line nobody waits": {noLine, `
			A acquire 60   | A granted
			B acquire 50   | B NoBytes 50/100
			C acquire 40   | C granted
			D acquire 0    | D NoSlot`},
		"an empty line takes one waiter of any size": {fewBytes, `
			A acquire 100  | A granted
			B acquire 100  |
			C acquire 1    | C LineHeavy 101/50
			A release      | B granted`},
		"bytes in line are bounded": {fewBytes, `
			A acquire 100  | A granted
			B acquire 30   |
			C acquire 20   |
			D acquire 1    | D LineHeavy 51/50
			E acquire 0    |
			B leave        | B Ended
			F acquire 30   |
			A release      | C granted, E granted, F granted`},
		"whoever has 50 ms left waits for a quarter of them": {small(), `
			A acquire 100            | A granted
			B acquire 10 left=50ms   |
			pass 12ms                |
			pass 500us               | B NoBytes 10/100 after 12.5ms`},
		"time enough waits for the queue timeout": {small(), `
			A acquire 100            | A granted
			B acquire 10 left=1h     |
			pass 200ms               | B NoBytes 10/100 after 200ms`},
		"a large one at the head is not starved by small arrivals": {small(), `
			A acquire 50   | A granted
			B acquire 50   | B granted
			L acquire 80   |
			C acquire 10   |
			A release      |
			D acquire 10   |
			B release      | C granted, D granted, L granted`},
		"a full gate is passed over and its waiters keep their place": {small(), `
			A acquire 40 gate   | A granted
			B acquire 10 gate   |
			C acquire 10 gate   |
			D acquire 60        | D granted
			E acquire 10        |
			A release           | B granted, E granted
			B release           | C granted`},
		"a full gate times out as a slot": {small(), `
			A acquire 40 gate   | A granted
			B acquire 10 gate   |
			pass 200ms          | B NoSlot 200/200 after 200ms`},
		"debt that fills a gate lets those by that its waiter held back": {small(), `
			A acquire 80           | A granted
			B acquire 40 gate      |
			C acquire 10           |
			D acquire 5 gate debt  | C granted, D granted`},
	} {
		t.Run(name, func(t *testing.T) { play(t, test.settings, test.story) })
	}
}

// An answer must not depend on luck: whoever has gone away already is told so, whatever the pool is like.
func TestCallerThatHasGoneIsRefusedBeforeAnythingElse(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var account pool.Account
	for name, prepare := range map[string]func(*pool.Pool){
		"free":   func(*pool.Pool) {},
		"closed": (*pool.Pool).Close,
		"shrunk": func(p *pool.Pool) { p.Resize(pool.Size{MaxQueued: 1000}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := pool.New(small())
			var holder, l, part pool.Lease
			require.Equal(t, pool.Granted, p.Acquire(t.Context(), &holder, pool.Request{Account: &account, Bytes: 1}).Outcome)
			prepare(p)
			ended := pool.Result{Outcome: pool.Ended}
			require.Equal(t, ended, p.Acquire(gone, &l, pool.Request{Account: &account, Bytes: 1}))
			require.Equal(t, ended, holder.Grow(gone, 1))
			require.Equal(t, ended, holder.Settle(gone, &part, pool.Request{Bytes: 2}))
			l.Release() // of what was refused: nothing
			part.Release()
			require.EqualValues(t, 1, p.Stats().Held)
			holder.Release()
			require.Zero(t, p.Stats().Held)
		})
	}
}

func TestAbsurdSizesDoNotWrapAround(t *testing.T) {
	p := pool.New(small())
	var account pool.Account
	var a, b pool.Lease
	ask := func(l *pool.Lease, n int64) pool.Result {
		return p.Acquire(t.Context(), l, pool.Request{Account: &account, Bytes: n})
	}
	never := pool.Result{Outcome: pool.TooLarge, Observed: math.MaxInt64, Limit: 100}
	require.Equal(t, pool.Granted, ask(&a, 60).Outcome)
	require.Equal(t, never, ask(&b, math.MaxInt64))
	require.Equal(t, never, a.Grow(t.Context(), math.MaxInt64))
	require.Equal(t, pool.Granted, a.Grow(t.Context(), math.MinInt64).Outcome)
	require.Zero(t, p.Stats().Held)
	a.Release()

	// All bytes there are, as debt, leave no room below zero.
	var debt, c pool.Lease
	r := pool.Request{Account: &account, Bytes: math.MaxInt64, Debt: true}
	require.Equal(t, pool.Granted, p.Acquire(t.Context(), &debt, r).Outcome)
	p.Drain()
	require.Equal(t, pool.Closed, ask(&c, 1).Outcome)
	debt.Release()
}
