// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// contended makes a pool that one tenant may fill, and whose line is too short for what it sends.
const contended = `
extensions::governor::admission::queue_timeout: 5s
extensions::governor::tenants: {defaults: {memory_fraction: 1, max_concurrent: 100}, overrides: {acme: {}}}`

// TestLightTenantsAreAcceptedBesideAFlood has 64 clients of one tenant send what fills the pool twice to a
// server that is slow with it, and two tenants beside it that send little: one with an override, whose share
// is its own, and one without, who is a stranger like the flood.
func TestLightTenantsAreAcceptedBesideAFlood(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byHeader(t)
	s.slowDown("flood", 4*time.Second)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, contended)})

	f := startFlood(t, tenant{c, "flood", by}, 64)
	eventually(t, "the pool is full and the line too", func() bool { return f.refused.Load() > 0 })
	var light sync.WaitGroup
	for _, name := range []string{"acme", "globex"} {
		client := tenant{c, name, by}
		light.Go(func() {
			for n := range 20 {
				id := fmt.Sprint(name, " ", n)
				wantAccepted(t, client.send(protocols[n%2], signals[n%2*2], one(id, mib))) // traces, logs
			}
		})
	}
	light.Wait()
	f.stop()
	t.Logf("20 batches of each light tenant beside a flood of which %d were accepted and %d refused", f.accepted.Load(), f.refused.Load())
	want := append(numbered("acme", 20), numbered("globex", 20)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range want {
		if s.seen[id] != 1 {
			t.Errorf("%s came %d times, want once", id, s.seen[id])
		}
	}
}

// flood is many clients of one tenant that send large batches as fast as they are answered.
type flood struct {
	accepted, refused atomic.Int64
	stop              func() // and waits for them to be done
}

func startFlood(t *testing.T, client tenant, clients int) *flood {
	t.Helper()
	conn, err := client.dial()
	if err != nil {
		t.Fatal(err)
	}
	r := client.request(traces, one("flood", mib))
	ctx, cancel := context.WithCancel(client.context())
	f := &flood{}
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				switch err := traces.send(ctx, conn, r); status.Code(err) {
				case codes.OK:
					f.accepted.Add(1)
				case codes.Unavailable:
					f.refused.Add(1)
					select { // a little patience, less than it is asked for
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				case codes.Canceled:
				default:
					t.Errorf("the flood is answered %v", err)
				}
			}
		})
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		conn.Close()
	})
	t.Cleanup(f.stop)
	return f
}
