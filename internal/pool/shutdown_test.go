// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

func TestResize(t *testing.T) {
	for name, story := range map[string]string{
		"down takes nothing back, it is a debt": `
			A acquire 80   | A granted
			resize 50      |
			= held 80 used 1 queued 0 growing 0
			B acquire 51   | B TooLarge 51/50
			C acquire 10   |
			A grow -30     | A+ granted
			A grow -10     | A+ granted, C granted`,
		"up serves the line": `
			A acquire 80   | A granted
			B acquire 40   |
			C acquire 40   |
			pass 10ms      |
			resize 120     | B granted after 10ms
			resize 160     | C granted after 10ms`,
		"up serves holders first": `
			A acquire 50   | A granted
			B acquire 50   | B granted
			C acquire 30   |
			A grow 30      |
			resize 130     | A+ granted
			= held 130 used 2 queued 1 growing 0`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

func TestShutdown(t *testing.T) {
	for name, story := range map[string]string{
		"drain answers all that wait and grants what fits": `
			A acquire 60          | A granted
			B acquire 50          |
			C acquire 10          |
			D acquire 10          |
			pass 10ms             |
			drain                 | B Closed after 10ms, C Closed after 10ms, D Closed after 10ms
			E acquire 40          | E granted
			F acquire 1           | F Closed
			G acquire 101         | G TooLarge 101/100
			A grow -20            | A+ granted
			A grow 10             | A+ granted
			a settle A 60         | a granted
			A grow 20             | A+ Closed`,
		"drain answers holders that want more": `
			A acquire 50          | A granted
			B acquire 50          | B granted
			A grow 10             |
			drain                 | A+ Closed
			A grow 10             | A+ Closed
			B release             |
			A grow 10             | A+ granted`,
		"close refuses all, and takes back what is released": `
			A acquire 50          | A granted
			B acquire 50          | B granted
			C acquire 50          |
			A grow 10             |
			close                 | A+ Closed, C Closed
			D acquire 0           | D Closed
			B release             |
			E acquire 10          | E Closed
			A grow 10             | A+ Closed
			a settle A 10         | a Closed
			A grow -10            | A+ granted
			= held 40 used 1 queued 0 growing 0`,
		"drain after close does not open it again": `
			close                 |
			drain                 |
			A acquire 10          | A Closed`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// Whoever waits when a pool ends is answered, and answered once; the bubble sees to it that nobody stays.
func TestShutdownWithAFullLineLeavesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 256
		settings := small()
		settings.MaxQueued = waiters
		p := pool.New(settings)
		var (
			account pool.Account
			holder  pool.Lease
			answers = make(chan pool.Outcome, 2*waiters)
		)
		require.Equal(t, pool.Granted, p.Acquire(t.Context(), &holder, pool.Request{Account: &account, Bytes: 100}).Outcome)
		for range waiters {
			go func() {
				var l pool.Lease
				answers <- p.Acquire(t.Context(), &l, pool.Request{Account: &account, Bytes: 1}).Outcome
			}()
		}
		synctest.Wait()
		require.Empty(t, answers)
		p.Drain()
		p.Close()
		synctest.Wait()
		require.Len(t, answers, waiters)
		for range waiters {
			require.Equal(t, pool.Closed, <-answers)
		}
		holder.Release()
		require.Zero(t, p.Stats().Held)
	})
}
