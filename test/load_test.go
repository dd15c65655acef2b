// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// TestLoadOfMixedSizesLosesNothing sends for half a minute, through both stock exporters, more than the tiny
// pool can hold at once to a server that now and then does not answer. What clients were told is there
// arrives, and all of it once.
func TestLoadOfMixedSizesLosesNothing(t *testing.T) {
	const load, clients = 30 * time.Second, 4
	s := startSink(t)
	front, back := behind(t, s, setup{yaml: []string{"extensions::governor::admission::queue_timeout: 100ms"}})

	sent := make(chan []string, clients)
	start := time.Now()
	for client := range clients {
		sig := bySignal[client%len(bySignal)]
		go func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			var ids []string
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for n := 0; time.Since(start) < load; n++ {
				b := items(1+random.IntN(100), fmt.Sprint(sig.name, client, "-", n))
				b.weight = random.IntN(8 * mib)
				if a := front.send(grpcProtocol, sig, b); a.status.Code() == codes.OK {
					ids = append(ids, b.ids...)
				} else if a.status.Code() != codes.Unavailable { // the queue in front is full
					t.Errorf("refused: %v", a)
				}
				<-pace.C
			}
			sent <- ids
		}()
	}
	for tick := time.Tick(time.Second); time.Since(start) < load; { // a server that is away for a second in three
		h := s.hold()
		<-tick
		s.release(h)
		<-tick
		<-tick
	}
	var all []string
	for range clients {
		all = append(all, <-sent...)
	}
	eventually(t, "everything arrives", func() bool { return s.count() >= len(all) })
	back.wantIdle()
	front.terminate()
	s.wantOnce(all)
	m := back.scrape()
	t.Logf("%d named items in %d batches; refused on the way: %d contended, %d for want of room in line", len(all),
		m.sum("otelcol_governor_batch_memory"), back.refusals("memory_contended"), back.refusals("queue_full"))
	if back.refusals("memory_contended")+back.refusals("queue_full") == 0 {
		t.Error("nothing was refused, so nothing was shown")
	}
}

// TestHundredThousandSpansAreOneBatch sends a batch of the size that makes collectors fall over.
func TestHundredThousandSpansAreOneBatch(t *testing.T) {
	s := startSink(t)
	c := start(t, setup{
		config: "governed.yaml", sink: s, profiles: true,
		yaml: []string{"extensions::governor::memory::pool_size: 512MiB"},
	})
	b := items(100_000, "span")
	wantAccepted(t, c.send(grpcProtocol, traces, b))
	s.wantOnce(b.ids)
	c.wantIdle()
}
