// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"
	"time"
)

// behind starts a governed collector and, in front of it, one with stock exporters: traces go over gRPC,
// logs over HTTP.
func behind(t *testing.T, s *sink, governed setup) (front, back *collector) {
	t.Helper()
	governed.config, governed.sink, governed.profiles = "governed.yaml", s, true
	back = start(t, governed)
	return before(t, back), back
}

// before starts a collector with stock exporters to another one.
func before(t *testing.T, back *collector, yaml ...string) *collector {
	t.Helper()
	return start(t, setup{config: "front.yaml", yaml: yaml, env: []string{"GRPC=" + back.grpc, "HTTP=http://" + back.http}})
}

// eachWay tells a story of a governed collector without a door and with one, as YAML.
func eachWay(t *testing.T, tell func(*testing.T, string)) {
	t.Helper()
	for name, yaml := range map[string]string{"limiter": "", "door": atTheDoor} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, yaml)
		})
	}
}

// bySignal are the signals that go over different exporters.
var bySignal = []signal{traces, logs}

// TestStockExportersRetryWhatCouldFitLater sends through both exporters what does not fit until a batch at
// work is answered.
func TestStockExportersRetryWhatCouldFitLater(t *testing.T) {
	t.Parallel()
	eachWay(t, retryWhatCouldFitLater)
}

func retryWhatCouldFitLater(t *testing.T, yaml string) {
	s := startSink(t)
	front, back := behind(t, s, setup{yaml: []string{yaml, "extensions::governor::admission: {queue_timeout: 500ms, max_queued_fraction: 1}"}})
	h := s.hold()
	working := back.sending(grpcProtocol, traces, one("at work", filling))
	s.wantArrival(h)
	sent := []string{"at work"}
	for _, sig := range bySignal {
		for _, id := range []string{"a", "b"} {
			id = sig.name + " " + id
			wantAccepted(t, front.send(grpcProtocol, sig, one(id, middling)))
			sent = append(sent, id)
		}
	}
	for _, sig := range bySignal {
		eventually(t, sig.name+" are refused", func() bool {
			return back.scrape().sum("otelcol_governor_batch_duration",
				"error_type=memory_contended", "otelcol_signal="+sig.name) >= 2
		})
	}
	s.release(h)
	wantAccepted(t, <-working)
	eventually(t, "everything arrives", func() bool { return s.count() == len(sent) })
	back.wantIdle()
	front.terminate() // whatever it still has, it sends now
	s.wantOnce(sent)
}

// TestStockExportersDropWhatCanNeverFit sends through both exporters what the governor refuses for good.
func TestStockExportersDropWhatCanNeverFit(t *testing.T) {
	t.Parallel()
	eachWay(t, dropWhatCanNeverFit)
}

func dropWhatCanNeverFit(t *testing.T, yaml string) {
	s := startSink(t)
	front, back := behind(t, s, setup{yaml: []string{yaml}})
	for n, sig := range bySignal {
		wantAccepted(t, front.send(grpcProtocol, sig, one("never "+sig.name, impossible)))
		if l := front.wantNthLine(n+1, "Exporting failed. Dropping data."); l.bytes("dropped_items") < 1 {
			t.Errorf("%s: the exporter says %v", sig.name, l)
		}
	}
	sent := []string{}
	for _, sig := range bySignal {
		wantAccepted(t, front.send(grpcProtocol, sig, one("small "+sig.name, 0)))
		sent = append(sent, "small "+sig.name)
	}
	eventually(t, "the small ones arrive", func() bool { return s.count() == len(sent) })
	front.terminate()
	if n := back.refusals("memory_limit"); n != 2 {
		t.Errorf("%d batches were sent that can never fit, want each once", n)
	}
	s.wantOnce(sent)
}

// TestStockExportersComeBackWhenTheirRateAllows sends through both exporters, each for a tenant of its own,
// two requests where the rate allows one a second.
func TestStockExportersComeBackWhenTheirRateAllows(t *testing.T) {
	t.Parallel()
	eachWay(t, comeBackWhenTheirRateAllows)
}

func comeBackWhenTheirRateAllows(t *testing.T, yaml string) {
	s, by := startSink(t), byHeader(t)
	back := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, yaml,
		"extensions::governor::tenants::defaults::rate: {requests_per_second: 1, burst: 1s}")})
	front := before(t, back,
		"exporters::otlp_grpc::headers: {"+headerName+": acme}", "exporters::otlp_http::headers: {"+headerName+": globex}")
	began, sent := time.Now(), []string{}
	for _, sig := range bySignal {
		for _, id := range []string{"a", "b"} {
			id = sig.name + " " + id
			wantAccepted(t, front.send(grpcProtocol, sig, one(id, 0)))
			sent = append(sent, id)
		}
	}
	eventually(t, "everything arrives", func() bool { return s.count() == len(sent) })
	if took := time.Since(began); took < time.Second {
		t.Errorf("everything arrived after %v, when the rates could not allow it", took)
	}
	front.terminate()
	s.wantOnce(sent)
	for _, sig := range bySignal { // whose delays were as long as needed
		n := back.scrape().sum("otelcol_governor_batch_duration", "error_type=tenant_rate", "otelcol_signal="+sig.name)
		if n != 1 {
			t.Errorf("%s: %d refusals, want 1", sig.name, n)
		}
	}
}
