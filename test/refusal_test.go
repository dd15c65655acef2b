// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// Weights in a pool of 32MiB: beside one that nearly fills it not even a middling one fits, two heavy ones do
// not fit together, an impossible one does not fit at all.
const (
	middling   = 6 * mib
	heavy      = 20 * mib
	filling    = 28 * mib
	impossible = 40 * mib
)

var grpcProtocol = protocols[0]

// TestRefusalsAreUnderstoodOverEveryProtocol sends every signal, over every protocol, what could fit later,
// what can never fit and what fits.
func TestRefusalsAreUnderstoodOverEveryProtocol(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{
		config: "governed.yaml", sink: s, profiles: true,
		yaml: []string{"extensions::governor::admission::queue_timeout: 20ms"},
	})
	h := s.hold()
	first := c.sending(grpcProtocol, traces, one("first", filling))
	s.wantArrival(h)
	for _, p := range protocols {
		for _, sig := range signals {
			t.Run(p.name+" "+sig.name, func(t *testing.T) {
				wantLater(t, c.send(p, sig, one("later", middling)), "memory_contended")
				if p.name == grpcProtocol.name || sig.name == traces.name { // the others would only take time
					wantNever(t, c.send(p, sig, one("never", impossible)), "memory_limit")
				}
			})
		}
	}
	s.release(h)
	wantAccepted(t, <-first)

	accepted := []string{"first"}
	for _, p := range protocols {
		for _, sig := range signals {
			id := "after " + p.name + " " + sig.name
			wantAccepted(t, c.send(p, sig, one(id, 0)))
			accepted = append(accepted, id)
		}
	}
	s.wantOnce(accepted)
	c.wantIdle()
}

// everyReason makes a governor whose limits can all be met: two places, one waiter, and a narrow limiter
// before logs.
const everyReason = `
extensions::governor::admission: {max_concurrent: 2, max_queued: 1, queue_timeout: 1m}
processors::limiter/narrow::limits: {max_batch_memory: 4MiB, max_batch_items: 10, processing_timeout: 100ms}
service::pipelines::logs::processors: [limiter/narrow]`

// TestEveryReasonIsTold raises every reason once, but panic, which no component of the binary can be made
// to do, and shutting_down, which has stories of its own.
func TestEveryReasonIsTold(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: []string{everyReason}})

	wantAccepted(t, c.send(grpcProtocol, traces, one("ordinary", 0)))
	wantNever(t, c.send(grpcProtocol, logs, items(11, "many")), "batch_items")
	names := c.scrape().own()

	wantNever(t, c.send(grpcProtocol, logs, one("large", 6*mib)), "batch_memory")
	wantNever(t, c.send(grpcProtocol, traces, one("impossible", impossible)), "memory_limit")

	h := s.hold()
	wantLater(t, c.send(grpcProtocol, logs, one("slow", 0)), "processing_timeout")
	s.wantArrival(h)
	s.release(h)

	h = s.hold()
	first := c.sending(grpcProtocol, traces, one("first", heavy))
	s.wantArrival(h)
	wantLater(t, c.hurried(traces, one("contended", heavy)), "memory_contended")
	second := c.sending(grpcProtocol, traces, one("second", heavy))
	c.wantWaiting(1)
	wantLater(t, c.send(grpcProtocol, metrics, one("third", 0)), "queue_full")
	s.release(h)
	wantAccepted(t, <-first)
	wantAccepted(t, <-second)

	h = s.hold()
	one1, one2 := c.sending(grpcProtocol, traces, one("place 1", 0)), c.sending(grpcProtocol, metrics, one("place 2", 0))
	s.wantArrival(h)
	s.wantArrival(h)
	wantLater(t, c.hurried(traces, one("no place", 0)), "queue_timeout")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan answer, 1)
	go func() { left <- grpcProtocol.send(c, ctx, traces, traces.make(one("left", 0))) }()
	c.wantWaiting(1)
	leave()
	if a := <-left; a.status.Code() != codes.Canceled {
		t.Errorf("want Canceled: %v", a)
	}
	c.wantWaiting(0)
	s.release(h)
	wantAccepted(t, <-one1)
	wantAccepted(t, <-one2)

	reasons := []string{
		"batch_items", "batch_memory", "memory_limit", "processing_timeout",
		"memory_contended", "queue_full", "queue_timeout", "canceled",
	}
	for _, reason := range reasons {
		if n := c.refusals(reason); n != 1 {
			t.Errorf("%s: %d refusals, want 1", reason, n)
		}
	}
	if after := c.scrape().own(); !slices.Equal(after, names) {
		t.Errorf("names of metrics are now %v, and were %v", after, names)
	}
	wantAccepted(t, c.send(grpcProtocol, profiles, one("afterwards", 0)))
	s.wantOnce([]string{"ordinary", "first", "second", "place 1", "place 2", "afterwards"})
	c.wantIdle()

	c.terminate()
	c.wantSummaries(int64(len(reasons)))
}

// TestBytesThatWaitAreBounded has an empty line, which takes one waiter of any size, and then no more than
// the bytes that may wait.
func TestBytesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{
		config: "governed.yaml", sink: s, profiles: true,
		yaml: []string{"extensions::governor::admission: {max_queued_fraction: 0.25, queue_timeout: 1m}"},
	})
	h := s.hold()
	first := c.sending(grpcProtocol, traces, one("first", heavy))
	s.wantArrival(h)
	second := c.sending(grpcProtocol, traces, one("second", heavy))
	c.wantWaiting(1)
	wantLater(t, c.send(grpcProtocol, metrics, one("third", 0)), "queue_full")
	s.release(h)
	wantAccepted(t, <-first)
	wantAccepted(t, <-second)
	s.wantOnce([]string{"first", "second"})
	c.wantIdle()
}

// hurried sends a batch whose client gives the governor half a second.
func (c *collector) hurried(sig signal, b batch) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return grpcProtocol.send(c, ctx, sig, sig.make(b))
}

// wantWaiting waits until just n batches wait in line.
func (c *collector) wantWaiting(n int64) {
	c.t.Helper()
	eventually(c.t, "the right number of batches wait", func() bool {
		return c.scrape().sum("otelcol_governor_queue_usage") == n
	})
}

// wantSummaries checks that the log tells of n refusals, in a few lines for all of them.
func (c *collector) wantSummaries(n int64) {
	c.t.Helper()
	var told int64
	for _, l := range c.log.all(message("Batches were refused")) {
		counts, _ := l["batches"].(map[string]any)
		for reason := range counts {
			told += line(counts).bytes(reason)
		}
	}
	if told != n {
		c.t.Errorf("the log tells of %d refusals, want %d", told, n)
	}
}
