// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"strings"
	"testing"
)

// gatewayToSink makes the default gateway hand on to a sink and answer when that has.
const gatewayToSink = `
exporters::otlp_grpc: {endpoint: '${env:SINK}', tls: {insecure: true}, sending_queue: {enabled: false}}
service::pipelines::traces::exporters: [debug, otlp_grpc]
service::pipelines::metrics::exporters: [debug, otlp_grpc]
service::pipelines::logs::exporters: [debug, otlp_grpc]`

// TestTelemetrygenThroughTheDefaultGateway sends every signal by contrib's load generator.
func TestTelemetrygenThroughTheDefaultGateway(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{config: "gateway.yaml", yaml: []string{gatewayToSink}, sink: s})
	const runs = 20 // of the generator's loop; a trace is a parent and a child
	for _, g := range []struct {
		signal string
		items  int64
		flags  []string
	}{
		{"traces", 2 * runs, []string{"--traces", "20"}},
		{"metrics", runs, []string{"--metrics", "20"}},
		{"logs", runs, []string{"--logs", "20"}},
	} {
		for _, protocol := range []string{"grpc", "http"} {
			flags := append([]string{g.signal, "--otlp-insecure", "--rate", "0"}, g.flags...)
			if protocol == "http" {
				flags = append(flags, "--otlp-http", "--otlp-endpoint", c.http)
			} else {
				flags = append(flags, "--otlp-endpoint", c.grpc)
			}
			if out, err := exec.Command(built(t, "../bin/telemetrygen", "make bin/telemetrygen"), flags...).CombinedOutput(); err != nil {
				t.Fatalf("telemetrygen %s: %v\n%s", strings.Join(flags, " "), err, out)
			}
		}
		m, want := c.scrape(), 2*g.items
		limiter := m.sum("otelcol_limiter_items", "otelcol_signal="+g.signal, "otelcol_component_outcome=success")
		if all := m.sum("otelcol_limiter_items", "otelcol_signal="+g.signal); limiter != want || all != want {
			t.Errorf("%s: %d items passed the limiter and %d came to it, want %d", g.signal, limiter, all, want)
		}
		if got := s.received(g.signal); got != want {
			t.Errorf("%s: %d items arrived, want %d", g.signal, got, want)
		}
	}
	c.wantIdle()
	m := c.scrape()
	pool, budget := m.sum("otelcol_governor_memory_desired_limit"), m.sum("otelcol_governor_memory_budget")
	// What Go keeps beside its heap changes with every collection of garbage, and so does what is nobody's.
	const little = 256 * mib
	if l := c.wantLine("Memory pool sized"); pool != l.bytes("pool") || budget > l.bytes("budget") || budget < l.bytes("budget")-little {
		t.Errorf("desired limit %d and budget %d, but the log says %v", pool, budget, l)
	}
	unowned := m.sum("otelcol_governor_memory_unowned")
	if limit, most := m.sum("otelcol_governor_memory_limit"), min(pool, budget); limit > most || limit < most-little || unowned > little {
		t.Errorf("limit %d, want the smaller of the pool %d and of the budget %d, less what is nobody's, %d", limit, pool, budget, unowned)
	}
}

// TestPromtoolAcceptsTheScrape has a real Prometheus look at names and help texts.
func TestPromtoolAcceptsTheScrape(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("skipped, not passed: no promtool here")
	}
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true})
	wantAccepted(t, c.send(protocols[0], traces, one("small", 0)))
	wantNever(t, c.send(protocols[0], traces, one("large", 40*mib)), "memory_limit")
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(c.exposition())
	out, _ := check.CombinedOutput()
	for said := range strings.Lines(string(out)) {
		switch {
		case strings.Contains(said, `should have "_total" suffix`): // the Collector leaves it out, everywhere
		case strings.HasPrefix(said, "otelcol_governor_tenant_count "): // counts, and is no histogram's
		default:
			t.Errorf("promtool says %s", said)
		}
	}
	if code := check.ProcessState.ExitCode(); code != 0 && code != 3 { // 3: what it says is advice
		t.Errorf("promtool ended with %d:\n%s", code, out)
	}
}
