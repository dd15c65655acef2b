// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/http"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
)

// TestReloadAnswersEverybody reloads a collector with a batch at work and others in line.
func TestReloadAnswersEverybody(t *testing.T) {
	t.Parallel()
	s, c, finish := withWaiters(t)
	c.signal(syscall.SIGHUP)
	finish()
	c.wantNthLine(2, "Everything is ready.")
	if l := c.wantNthLine(2, "Memory pool sized"); l.bytes("pool") != 32*mib {
		t.Errorf("after the reload: %v", l)
	}
	for _, sig := range signals {
		wantAccepted(t, c.send(grpcProtocol, sig, one("after "+sig.name, 0)))
	}
	s.wantOnce([]string{"at work", "after traces", "after metrics", "after logs", "after profiles"})
	c.wantIdle()
}

// TestTerminationAnswersEverybody ends a collector with a batch at work and others in line.
func TestTerminationAnswersEverybody(t *testing.T) {
	t.Parallel()
	s, c, finish := withWaiters(t)
	c.stopping = true
	c.signal(syscall.SIGTERM)
	finish()
	c.wantExit()
	s.wantOnce([]string{"at work"})
}

// withWaiters returns a collector that has a batch at work and one in line over each protocol. The function
// it returns checks the answers, once the collector has been told to end.
func withWaiters(t *testing.T) (*sink, *collector, func()) {
	s := startSink(t)
	c := start(t, setup{
		config: "governed.yaml", sink: s, profiles: true,
		yaml: []string{"extensions::governor::admission: {max_concurrent: 1, queue_timeout: 10m}"},
	})
	h := s.hold()
	working := c.sending(grpcProtocol, traces, one("at work", 0))
	s.wantArrival(h)
	var waiting []<-chan answer
	for _, p := range protocols {
		waiting = append(waiting, c.sending(p, logs, one("waits", 0)))
	}
	c.wantWaiting(int64(len(protocols)))
	return s, c, func() {
		for _, answers := range waiting {
			a := <-answers
			_, delayed := a.delay()
			if a.status.Code() != codes.Unavailable || a.reason() != "shutting_down" || delayed {
				t.Errorf("want Unavailable for shutting_down without a delay: %v", a)
			}
			if a.http != 0 && a.http != http.StatusServiceUnavailable {
				t.Errorf("want 503: %v", a)
			}
		}
		s.release(h)
		wantAccepted(t, <-working)
	}
}
