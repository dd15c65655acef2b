// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"maps"
	"testing"
)

// byTenant returns the values of a gauge that has a series for each tenant it names.
func (m families) byTenant(name string) map[string]int64 {
	values := map[string]int64{}
	for _, s := range m[name].GetMetric() {
		for _, l := range s.Label {
			if l.GetName() == "governor_tenant" {
				values[l.GetValue()] = int64(s.Gauge.GetValue())
			}
		}
	}
	return values
}

// TestTelemetryNamesThoseTenantsThatItShould has three tenants hold batches, of which one has an override, and
// looks at what telemetry says of each.
func TestTelemetryNamesThoseTenantsThatItShould(t *testing.T) {
	t.Parallel()
	for setting, k := range map[string]struct {
		yaml             string
		batches, allowed map[string]int64 // at work, and how many may be
	}{
		"none": {"{tenants: none}", map[string]int64{}, map[string]int64{}},
		"configured": {
			"{tenants: configured}",
			map[string]int64{"acme": 1, "_other": 3},
			map[string]int64{"acme": 9, "_other": 1024},
		},
		"top": {
			"{tenants: top, top: 2}", // by bytes
			map[string]int64{"globex": 1, "hooli": 2, "_other": 1},
			map[string]int64{"globex": 64, "hooli": 64, "_other": 1024},
		},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			s, by := startSink(t), byHeader(t)
			c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml,
				"extensions::governor: {telemetry: "+k.yaml+", tenants: {max_tracked: 100, overrides: {acme: {max_concurrent: 9}}}}")})
			h := s.hold()
			var working []<-chan answer
			for _, b := range []struct {
				tenant string
				weight int
			}{{"acme", mib}, {"globex", middling}, {"hooli", 2 * mib}, {"hooli", 2 * mib}} {
				working = append(working, tenant{c, b.tenant, by}.sending(grpcProtocol, traces, one("held", b.weight)))
				s.wantArrival(h)
			}
			m := c.scrape()
			if got := m.byTenant("otelcol_governor_tenant_concurrency_usage"); !maps.Equal(got, k.batches) {
				t.Errorf("batches at work %v, want %v", got, k.batches)
			}
			if got := m.byTenant("otelcol_governor_tenant_concurrency_limit"); !maps.Equal(got, k.allowed) {
				t.Errorf("batches that may be %v, want %v", got, k.allowed)
			}
			for name, n := range m.byTenant("otelcol_governor_tenant_memory_limit") {
				if want := map[bool]int64{true: 32 * mib, false: 16 * mib}[name == "_other"]; n != want {
					t.Errorf("%s may hold %d bytes, want %d", name, n, want)
				}
			}
			bytes := m.byTenant("otelcol_governor_tenant_memory_usage")
			var sum int64
			for name := range maps.Keys(bytes) {
				sum += bytes[name]
			}
			if all := m.sum("otelcol_governor_memory_usage"); len(bytes) > 0 && sum != all {
				t.Errorf("tenants hold %v, which is %d and not all %d", bytes, sum, all)
			}
			if count, limit := m.sum("otelcol_governor_tenant_count"), m.sum("otelcol_governor_tenant_limit"); count != 3 || limit != 100 {
				t.Errorf("%d tenants of %d, want 3 of 100", count, limit)
			}
			s.release(h)
			for _, w := range working {
				wantAccepted(t, <-w)
			}
			c.wantIdle()
		})
	}
}

// TestBatchOfSeveralTenantsIsOneBatch has two tenants in one batch. Each holds its share, and the batch is
// admitted or refused as a whole, which costs nobody anything.
func TestBatchOfSeveralTenantsIsOneBatch(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byResource(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, `
extensions::governor::telemetry::tenants: top
extensions::governor::tenants::overrides:
  acme: {rate: {requests_per_second: 0.01, burst: 200s}}
  globex: {memory_fraction: 0.25}
  hooli: {max_batch_items: 10}`)})
	send := func(parts ...part) answer {
		return grpcProtocol.send(c, context.Background(), traces, shared(parts...))
	}
	// Two requests are all that acme has. Those refused for others' sake cost it none.
	for range 3 {
		wantNever(t, send(part{"acme", one("of acme", mib)}, part{"hooli", items(11, "of hooli")}), "batch_items")
		wantNever(t, send(part{"acme", one("of acme", mib)}, part{"globex", one("of globex", 9*mib)}), "memory_limit")
	}
	h := s.hold()
	working := make(chan answer, 1)
	go func() {
		working <- send(part{"acme", one("by acme", 4*mib)}, part{"globex", one("by globex", 6*mib)}, part{"hooli", items(10, "by hooli")})
	}()
	s.wantArrival(h)
	m := c.scrape()
	bytes := m.byTenant("otelcol_governor_tenant_memory_usage")
	for name, roughly := range map[string]int64{"acme": 4 * mib, "globex": 6 * mib, "hooli": 2 << 10} {
		if n := bytes[name]; n < roughly*9/10 || n > roughly*2 {
			t.Errorf("%s holds %d bytes, want %d or a little more", name, n, roughly)
		}
	}
	if all := m.sum("otelcol_governor_memory_usage"); bytes["acme"]+bytes["globex"]+bytes["hooli"] != all {
		t.Errorf("tenants hold %v, which is not all %d", bytes, all)
	}
	batches := m.byTenant("otelcol_governor_tenant_concurrency_usage")
	if batches["acme"] != 0 || batches["globex"] != 1 || batches["hooli"] != 0 {
		t.Errorf("batches at work %v, want one, of globex whose share is the largest", batches)
	}
	wantLater(t, send(part{"acme", one("of acme", mib)}, part{"globex", one("of globex", 3*mib)}), "tenant_memory")
	s.release(h)
	wantAccepted(t, <-working)

	wantAccepted(t, send(part{"acme", one("the last of acme", 0)}))
	wantRate(t, send(part{"acme", one("of acme", 0)}, part{"globex", one("of globex", mib)}))
	wantAccepted(t, send(part{"globex", one("by globex again", 0)}))
	s.wantOnce(append([]string{"by acme", "by globex", "the last of acme", "by globex again"}, items(10, "by hooli").ids...))
	c.wantIdle()
}
