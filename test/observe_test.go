// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"
	"time"
)

const observing = `
extensions::governor: {mode: observe, admission: {max_concurrent: 1}}
processors::limiter/few::limits::max_batch_items: 10
processors::limiter/hasty::limits::processing_timeout: 1ms
service::pipelines::profiles::processors: [limiter/few]
service::pipelines::logs::processors: [limiter/hasty]`

// TestObserveModeAdmitsEverything breaks limits of a governor that only counts.
func TestObserveModeAdmitsEverything(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: []string{observing}})

	h := s.hold()
	var answers []<-chan answer
	send := func(sig signal, b batch) {
		answers = append(answers, c.sending(grpcProtocol, sig, b))
		s.wantArrival(h)
	}
	many := items(11, "many")
	send(traces, one("alone", 0))
	send(traces, one("no place", 0))
	send(metrics, one("impossible", impossible))
	send(profiles, many)
	since := time.Now()
	send(logs, one("slow", 0))
	eventually(t, "the hasty limiter's time is over", func() bool { return time.Since(since) > 5*time.Millisecond })
	s.release(h)
	for _, a := range answers {
		wantAccepted(t, <-a)
	}
	s.wantOnce(append([]string{"alone", "no place", "impossible", "slow"}, many.ids...))
	c.wantIdle()

	m := c.scrape()
	for reason, want := range map[string]int64{
		"memory_limit":       1, // impossible
		"batch_items":        1, // many
		"queue_timeout":      2, // no place, slow
		"processing_timeout": 1, // slow
	} {
		if n := m.sum("otelcol_governor_observed_refusals", "error_type="+reason); n != want {
			t.Errorf("%s: %d observed, want %d", reason, n, want)
		}
	}
	if all := m.sum("otelcol_governor_observed_refusals"); all != 5 {
		t.Errorf("%d observed in all, want 5", all)
	}
	if n := c.refusals("memory_limit"); n != 0 {
		t.Errorf("%d refusals recorded of batches that were not refused", n)
	}
}

// TestObserveModeCountsEveryGateOfATenant has every tenant break its ceilings, as where they are enforced, and
// refuses nobody.
func TestObserveModeCountsEveryGateOfATenant(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byHeader(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, underTerms(),
		"extensions::governor::mode: observe")})
	count := func(reason string) int64 {
		return c.scrape().sum("otelcol_governor_observed_refusals", "error_type="+reason)
	}
	for _, o := range offences {
		client := tenant{c, o.tenant, by}
		h, working := s.holdOf("held"), make(<-chan answer)
		if len(o.working.ids) > 0 {
			working = client.sending(grpcProtocol, traces, o.working)
			s.wantArrival(h)
		}
		for range o.breaches {
			wantAccepted(t, client.send(grpcProtocol, traces, breach))
		}
		if o.first {
			wantAccepted(t, client.send(grpcProtocol, traces, one("first", 0)))
		}
		before := count(o.want.reason)
		wantAccepted(t, client.send(grpcProtocol, traces, o.batch))
		if n := count(o.want.reason) - before; n != 1 {
			t.Errorf("%s: %d observed, want 1", o.want.reason, n)
		}
		s.release(h)
		if len(o.working.ids) > 0 {
			wantAccepted(t, <-working)
		}
	}
	if n := c.refusals("tenant_rate"); n != 0 {
		t.Errorf("%d refusals recorded of batches that were not refused", n)
	}
	c.wantIdle()
}
