// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // which exporters use unless told otherwise
	"google.golang.org/grpc/status"
)

// sink is the OTLP server behind a collector. It counts every item, and answers when the test lets it.
type sink struct {
	t       *testing.T
	address string

	mu   sync.Mutex
	seen map[string]int   // id: times
	sums map[string]int64 // signal: items
	held *hold            // nil: everything is answered at once
	slow slowness
	even time.Duration // how long everything takes
	away bool          // everything is answered with Unavailable
	back time.Time     // when the first request was taken after that
	keep bool          // requests are kept
	kept []request
}

// hold keeps the requests that come while it is in force and whose first item's id begins with prefix.
type hold struct {
	prefix  string
	arrived chan struct{}
	open    chan struct{}
}

// slowness is how long a request takes at most whose first item's id begins with prefix.
type slowness struct {
	prefix string
	takes  time.Duration
}

func startSink(t *testing.T) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{t: t, address: l.Addr().String(), seen: map[string]int{}, sums: map[string]int64{}}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(100 * mib))
	ptraceotlp.RegisterGRPCServer(server, &sinkTraces{sink: s})
	pmetricotlp.RegisterGRPCServer(server, &sinkMetrics{sink: s})
	plogotlp.RegisterGRPCServer(server, &sinkLogs{sink: s})
	pprofileotlp.RegisterGRPCServer(server, &sinkProfiles{sink: s})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// take counts a request, once the test lets it be answered. A caller that goes away before has sent nothing.
func (s *sink) take(ctx context.Context, from signal, r request) error {
	ids := idsOf(r)
	s.mu.Lock()
	h, slow, even, away := s.held, s.slow, s.even, s.away
	s.mu.Unlock()
	if away {
		return status.Error(codes.Unavailable, "not now")
	}
	pause(ctx, even)
	first := append(ids, "")[0]
	if slow.takes > 0 && strings.HasPrefix(first, slow.prefix) {
		select {
		case <-time.After(rand.N(slow.takes)): // so that those who came together do not leave together
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if h != nil && strings.HasPrefix(first, h.prefix) {
		h.arrived <- struct{}{}
		select {
		case <-h.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back.IsZero() {
		s.back = time.Now()
	}
	if s.keep {
		s.kept = append(s.kept, r)
	}
	for _, id := range ids {
		if id != "" {
			s.seen[id]++
		}
	}
	s.sums[from.name] += int64(len(ids))
	return nil
}

// hold makes requests wait from now on.
func (s *sink) hold() *hold { return s.holdOf("") }

// holdOf makes those wait whose first item's id begins with prefix.
func (s *sink) holdOf(prefix string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = &hold{prefix: prefix, arrived: make(chan struct{}, 1000), open: make(chan struct{})}
	return s.held
}

// wantArrival waits for one more request to be held.
func (s *sink) wantArrival(h *hold) {
	s.t.Helper()
	select {
	case <-h.arrived:
	case <-time.After(patience):
		s.t.Fatal("nothing arrived")
	}
}

// slowDown makes those take up to so long whose first item's id begins with prefix.
func (s *sink) slowDown(prefix string, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = slowness{prefix, takes}
}

// release answers those that wait, and from now on everybody at once.
func (s *sink) release(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == h {
		s.held = nil
		close(h.open)
	}
}

// fail makes every request from now on be answered with Unavailable, or no longer.
func (s *sink) fail(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.back = away, time.Time{}
}

// wantBack waits for the first request to be taken, and returns when that was.
func (s *sink) wantBack() time.Time {
	s.t.Helper()
	var back time.Time
	eventually(s.t, "the first request is taken", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		back = s.back
		return !back.IsZero()
	})
	return back
}

// received returns how many items of a signal came.
func (s *sink) received(signal string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[signal]
}

// count returns the number of different items that came.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// wantOnce checks that just these items came, each once.
func (s *sink) wantOnce(ids []string) {
	s.t.Helper()
	s.wantTimes(1, ids)
}

// wantTimes checks that just these items came, each so often.
func (s *sink) wantTimes(n int, ids []string) {
	s.t.Helper()
	s.mu.Lock()
	left := maps.Clone(s.seen)
	s.mu.Unlock()
	for _, id := range ids {
		if left[id] != n {
			s.t.Errorf("%s came %d times, want %d", id, left[id], n)
		}
		delete(left, id)
	}
	if len(left) > 0 {
		s.t.Errorf("these came too: %v", left)
	}
}

// The services differ in their types only.
type (
	sinkTraces struct {
		ptraceotlp.UnimplementedGRPCServer
		*sink
	}
	sinkMetrics struct {
		pmetricotlp.UnimplementedGRPCServer
		*sink
	}
	sinkLogs struct {
		plogotlp.UnimplementedGRPCServer
		*sink
	}
	sinkProfiles struct {
		pprofileotlp.UnimplementedGRPCServer
		*sink
	}
)

func (s sinkTraces) Export(ctx context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), s.take(ctx, traces, r)
}

func (s sinkMetrics) Export(ctx context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), s.take(ctx, metrics, r)
}

func (s sinkLogs) Export(ctx context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), s.take(ctx, logs, r)
}

func (s sinkProfiles) Export(ctx context.Context, r pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), s.take(ctx, profiles, r)
}
