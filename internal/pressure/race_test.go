// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Leases end and their data goes in any order and at once, while collections and ticks go by. What is told adds up.
func TestBooksAtOnce(t *testing.T) {
	b := NewBooks(start, Settings{GCFraction: 0.02})
	var carriers [4]Carrier
	var told [4]atomic.Int64
	for i := range carriers {
		carriers[i].Init(func(delta int64) { told[i].Add(delta) })
	}
	var workers sync.WaitGroup
	for i := range carriers {
		workers.Go(func() {
			for range 2000 {
				var left Left
				gone := make(chan struct{})
				go func() {
					b.Gone(&left)
					close(gone)
				}()
				told[i].Add(b.End(&left, &carriers[i], 1000))
				<-gone
			}
		})
	}
	workers.Go(func() {
		now := start
		for range 500 {
			now = now.Add(verdictAfter)
			b.Noticed(now, Runtime{}, 0, 0)
			b.Tick(now.Add(verdictAfter), 0)
			b.Refused(now)
			b.Room()
			b.Attainable()
		}
	})
	workers.Wait()
	for i := range told {
		require.Zero(t, told[i].Load())
		require.Zero(t, b.Carried(&carriers[i]))
	}
	require.Zero(t, b.Stats().Carried)
}
