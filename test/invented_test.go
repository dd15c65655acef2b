// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestAMillionInventedNamesCostNothing has clients invent a name for every batch they send, beside a tenant
// with an override. Names are remembered until there are max_tracked of them; or forgotten as fast as they
// may be, so that new ones take their places all the time.
func TestAMillionInventedNamesCostNothing(t *testing.T) {
	for name, k := range map[string]struct {
		idle  string
		names int64
	}{
		"remembered": {"10m", 1_000_000},
		"forgotten":  {"1s", 250_000},
	} {
		t.Run(name, func(t *testing.T) {
			by := byHeader(t)
			c := start(t, setup{config: "governed.yaml", profiles: true, yaml: append(by.yaml,
				"exporters::nop:", "service::pipelines::logs::exporters: [nop]",
				"extensions::governor::tenants: {idle_timeout: "+k.idle+", overrides: {acme: {}}}")})
			acme := tenant{c, "acme", by}
			inventors := startInventing(t, c, by)
			honest := startHonest(t, acme)

			const parts = 10
			seen := []window{c.window()}
			for n := range int64(parts) {
				began := time.Now()
				inventors.send(k.names / parts)
				took := time.Since(began)
				w := c.window()
				t.Logf("%7d names, %5d tracked: heap %5.1f MiB, resident %5.1f MiB, mean batch %5.1f µs, %5.0f/s",
					(n+1)*k.names/parts, w.tenants, float64(w.heap)/mib, float64(w.resident)/mib,
					w.mean(seen[n]), float64(k.names/parts)/took.Seconds())
				seen = append(seen, w)
			}
			full := seen[1] // all places are taken
			t.Logf("mean batch in parts 2 to 4: %.1f µs, in parts 8 to 10: %.1f µs", seen[4].mean(full), seen[10].mean(seen[7]))
			accepted, refused := honest(), inventors.refused.Load()
			w := seen[parts]
			t.Logf("%d batches of acme were accepted; of the invented %d were refused as too many at once", accepted, refused)
			if w.tenants > 10_000 || full.tenants < 5_000 {
				t.Errorf("%d tenants were tracked after the first part and %d at the end, want many and no more than 10000", full.tenants, w.tenants)
			}
			// Garbage may double the heap. To remember all names takes far more.
			if grown := w.heap - full.heap; grown > 32*mib {
				t.Errorf("the heap has grown by %d bytes since all places were taken", grown)
			}
			c.wantIdle()
			if name == "forgotten" {
				eventually(t, "they are", func() bool { return c.scrape().sum("otelcol_governor_tenant_count") <= 1 })
			}
		})
	}
}

// window is what telemetry says at one time.
type window struct {
	heap, resident   int64 // garbage included
	tenants          int64
	seconds, batches float64 // of all that was decided
}

func (c *collector) window() window {
	m := c.scrape()
	w := window{
		heap:     m.sum("otelcol_process_runtime_heap_alloc_bytes"),
		resident: m.sum("otelcol_process_memory_rss"),
		tenants:  m.sum("otelcol_governor_tenant_count"),
	}
	for _, s := range m["otelcol_governor_batch_duration"].GetMetric() {
		w.seconds += s.Histogram.GetSampleSum()
		w.batches += float64(s.Histogram.GetSampleCount())
	}
	return w
}

// mean is how many microseconds a batch took since then, from when it was asked for to when it was done.
func (w window) mean(since window) float64 {
	return 1e6 * (w.seconds - since.seconds) / (w.batches - since.batches)
}

// inventors are clients on several connections.
type inventors struct {
	send    func(n int64) // so many batches more, and waits for the answers
	refused atomic.Int64
}

func startInventing(t *testing.T, c *collector, by naming) *inventors {
	t.Helper()
	const connections, streams = 8, 16
	i := &inventors{}
	r := logs.make(one("tiny", 0))
	var next atomic.Int64
	i.send = func(n int64) {
		last := next.Load() + n
		var all sync.WaitGroup
		for range connections {
			conn, err := c.dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for range streams {
				all.Go(func() {
					for name := next.Add(1); name <= last; name = next.Add(1) {
						client := tenant{c, fmt.Sprint("invented-", name), by}
						switch err := logs.send(client.context(), conn, r); status.Code(err) {
						case codes.OK:
						case codes.Unavailable:
							i.refused.Add(1)
						default:
							t.Errorf("%s: %v", client.name, err)
						}
					}
				})
			}
		}
		all.Wait()
		next.Store(last)
	}
	return i
}

// startHonest sends small batches, one after the other. The function it returns ends that and returns how
// many there were.
func startHonest(t *testing.T, client tenant) func() int64 {
	stop, done, accepted := make(chan struct{}), make(chan struct{}), int64(0)
	go func() {
		defer close(done)
		for tick := time.Tick(20 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick:
				wantAccepted(t, client.send(grpcProtocol, logs, one("honest", 0)))
				accepted++
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return accepted
	}
}
