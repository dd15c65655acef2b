// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	// ceilingsOff takes the ceilings of tenants away, but for one.
	ceilingsOff = `
extensions::governor::tenants: {defaults: {memory_fraction: 1, max_concurrent: 1000, max_queued: 1000}, overrides: {` + bound + `: {memory_fraction: 0.05}}}`
	// ungoverned puts the Collector's own memory limiter in the place of ours.
	ungoverned = `
extensions: {governor: null}
receivers::otlp::protocols: {grpc: {middlewares: []}, http: {middlewares: []}}
processors: {memory_limiter: {check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 20}}
service::extensions: []
service::pipelines::traces::processors: [memory_limiter]
service::pipelines::metrics::processors: [memory_limiter]
service::pipelines::logs::processors: [memory_limiter]`
)

// TestExporterDownIsNobodysEnd has a server answer Unavailable for a minute while one tenant sends as much as it
// can and others send little, then has it come back.
func TestExporterDownIsNobodysEnd(t *testing.T) {
	for _, k := range []struct {
		name, yaml string
		governed   bool
	}{
		{"ceilings off", ceilingsOff, true},
		{"default ceilings", "extensions::governor::tenants::overrides: {" + bound + ": {memory_fraction: 0.05}}", true},
		{"memory_limiter", ungoverned, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			o := startOutage(t, k.governed, k.yaml)
			o.last(60 * time.Second)
			if k.governed {
				o.end(10 * time.Second)
				o.check()
			}
		})
	}
}

// check holds the governor to its promises.
func (o *outage) check() {
	t := o.t
	o.checkAcceptance()
	if peak := o.cgroup.peak(); peak > tightLimit/100*95 {
		t.Errorf("%d bytes were used, want 0.95 of %d at most", peak, tightLimit)
	}
	total := o.flooded.accepted * o.flood.weight
	for i, p := range o.paced {
		total += o.during[i].accepted * p.weight
	}
	share := float64(total) / float64(1+len(o.paced))
	for i, p := range o.paced {
		during := o.during[i]
		got, demand := float64(during.accepted*p.weight), float64(during.sent*p.weight)
		if p.client.name == bound {
			if during.refused["tenant_memory"] == 0 {
				t.Errorf("%s: %v, want it to have met its ceiling", bound, during)
			}
		} else if got < 0.8*min(demand, share) {
			t.Errorf("%s: %.0f bytes accepted of a demand of %.0f and an equal share of %.0f", p.client.name, got, demand, share)
		}
	}
	forced := 0.02
	if emulated() {
		forced = 0.04 // what one collection takes says little there of what the next one does
	}
	if o.gcs.share > 0.05 || o.gcs.forcedShare > forced {
		t.Errorf("%v; want 5 %% and %.0f %% at most", o.gcs, 100*forced)
	}
	budget := int64(math.MaxInt64)
	for _, m := range o.moments {
		budget = min(budget, m.budget)
	}
	if most := budget / 75 * 80; o.gcs.live > most { // the budget is 0.75 of what Go can hold
		t.Errorf("%d bytes were alive after a collection, want %d at most", o.gcs.live, most)
	}
}

// emulated reports whether the processors are qemu's own.
func emulated() bool {
	text, _ := os.ReadFile("/proc/cpuinfo") // which other systems have not
	return strings.Contains(string(text), "QEMU TCG")
}
