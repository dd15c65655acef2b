// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"testing"
	"time"
)

// TestHealthyExporterRefusesNobody sends for a while as fast as everything can go through an exporter whose queue
// is short and makes its senders wait.
func TestHealthyExporterRefusesNobody(t *testing.T) {
	s, g, by := startSink(t), newCgroup(t, tightLimit), byHeader(t)
	c := start(t, setup{config: "gateway.yaml", sink: s, cgroup: g, traced: true, yaml: append(by.yaml, queueing,
		"exporters::otlp_grpc::sending_queue: {queue_size: 2, num_consumers: 2, block_on_overflow: true}")})
	look, began := watch(t, c, 500*time.Millisecond), time.Now()
	var sources []*source
	for _, name := range lights {
		sources = append(sources, startSource(t, tenant{c, name, by}, 64<<10, 8))
	}
	<-time.After(20 * time.Second)
	var ids []string
	for _, source := range sources {
		source.stop()
		ids = append(ids, source.ids()...)
		t.Logf("%-9s %v", source.client.name, source.tally())
		if a := source.tally(); a.accepted < a.sent {
			t.Errorf("%s: %v, want all accepted", source.client.name, a)
		}
	}
	moments := look()
	t.Logf("%.0f batches/s; %v; OOM kills %d, peak %d MiB of %d%s", float64(len(ids))/time.Since(began).Seconds(),
		c.gcs.between(began, time.Now()), g.kills(), g.peak()/mib, tightLimit/mib, table(moments))
	survival, half := 0.0, moments[len(moments)/2:]
	for _, m := range half { // once there is something to go by
		survival += m.survival / float64(len(half))
	}
	if survival > 0.1 {
		t.Errorf("survival is %.3f on average, want nearly none", survival)
	}
	eventually(t, "everything arrives", func() bool { return s.count() >= len(ids) })
	s.wantOnce(ids)
}

// fanned batches traces and hands them to three exporters, each of which has one request under way.
const fanned = `
exporters::otlp_grpc/one: &exporter {endpoint: '${env:SINK}', tls: {insecure: true}, sending_queue: {queue_size: 100000, num_consumers: 1}}
exporters::otlp_grpc/two: *exporter
exporters::otlp_grpc/three: *exporter
processors::batch: {send_batch_size: 8192, timeout: 200ms}
service::pipelines::traces: {processors: [limiter, batch], exporters: [otlp_grpc/one, otlp_grpc/two, otlp_grpc/three]}`

// TestSlowDrainIsNobodysEnd sends for a minute twice what three exporters behind a batch processor can get rid of.
func TestSlowDrainIsNobodysEnd(t *testing.T) {
	const lasts, weight, takes = 60 * time.Second, 256 << 10, 500 * time.Millisecond
	s, g, by := startSink(t), newCgroup(t, tightLimit), byHeader(t)
	c := start(t, setup{config: "gateway.yaml", yaml: append(by.yaml, fanned), sink: s, cgroup: g, traced: true})
	s.delay(takes)
	look, began := watch(t, c, 500*time.Millisecond), time.Now()
	// What is merged has 8192 spans at least, which is seven of these batches, and each exporter sends one such in
	// takes. All sources together send fourteen meanwhile.
	var sources []*source
	for _, name := range lights {
		sources = append(sources, startPaced(t, tenant{c, name, by}, weight, 4*takes/14))
	}
	<-time.After(lasts)
	var ids []string
	for _, source := range sources {
		source.stop()
		ids = append(ids, source.ids()...)
		t.Logf("%-9s %v", source.client.name, source.tally())
	}
	t.Logf("%v; OOM kills %d, peak %d MiB of %d; %d spans sent on%s",
		c.gcs.between(began, time.Now()), g.kills(), g.peak()/mib, tightLimit/mib, s.received("traces"), table(look()))
	s.delay(0)
	eventually(t, "everything arrives", func() bool { return s.count() >= len(ids) })
	c.terminate() // the queues are emptied before it ends
	s.wantTimes(3, ids)
	if n := g.kills(); n > 0 {
		t.Errorf("%d OOM kills, want none", n)
	}
}

// delay makes every request take so long from now on.
func (s *sink) delay(takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.even = takes
}
