// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// straight answers for traces when the server has answered.
const straight = `
exporters::otlp_grpc: {endpoint: '${env:SINK}', tls: {insecure: true}, timeout: 5m, sending_queue: {enabled: false},
  retry_on_failure: {enabled: false}}
service::pipelines::traces::exporters: [otlp_grpc]`

// TestGarbageAloneRefusesNobodyForLong has Go collect nothing before it has filled its memory limit, which is
// above what counts as critical. Once everything is refused nothing is allocated, and Go would never look again.
func TestGarbageAloneRefusesNobodyForLong(t *testing.T) {
	t.Parallel()
	s, g := startSink(t), newCgroup(t, 512*mib)
	c := start(t, setup{
		config: "gateway.yaml", sink: s, cgroup: g, traced: true, env: []string{"GOGC=off", "GOMEMLIMIT=450MiB"},
		yaml: []string{straight, `
extensions::governor: {memory: {gomemlimit_fraction: 0.3}, guard: {elevated_fraction: 0.45, critical_fraction: 0.5}}`},
	})
	refused, n := 0, 0
	for ; refused == 0 && n < 2000; n++ {
		switch a := c.send(grpcProtocol, traces, one(fmt.Sprint("garbage ", n), mib)); {
		case a.reason() == "memory_pressure":
			wantLater(t, a, "memory_pressure")
			refused++
		case a.status.Code() != codes.Canceled: // which is what was only half here when the pressure turned critical
			wantAccepted(t, a)
		}
	}
	if refused == 0 {
		t.Fatalf("%d batches of 1 MiB were accepted and none refused", n)
	}
	began := time.Now()
	for ; ; refused++ {
		a := c.send(grpcProtocol, traces, one("afterwards", mib))
		if a.status.Code() == codes.OK {
			break
		}
		wantLater(t, a, "memory_pressure")
		if time.Since(began) > patience {
			t.Fatal("refused for ever")
		}
		<-time.After(time.Second)
	}
	now := time.Now()
	t.Logf("after %d batches of 1 MiB refused for %.1f s: %v", n, now.Sub(began).Seconds(), c.gcs.between(time.Time{}, now))
	eventually(t, "the level is ok", func() bool { return c.level() == 0 })
	forced := c.scrape().sum("otelcol_governor_gc_forced")
	if forced == 0 {
		t.Error("the governor has started no collection")
	}
	var levels []string
	for _, l := range c.log.all(message("Pressure level changed")) {
		levels = append(levels, l.text("to")+" "+l.text("cause"))
	}
	if got := strings.Join(levels, ", "); !strings.HasSuffix(got, "critical unreclaimable, ok unreclaimable") {
		t.Errorf("levels: %s", got)
	}
}

// TestHealthyProcessIsNotAlarmed keeps 0.45 of the memory limit alive at a slow server, while batches that are
// answered at once keep Go making garbage.
func TestHealthyProcessIsNotAlarmed(t *testing.T) {
	t.Parallel()
	const limit, busy = 512 * mib, 3 * time.Second
	s, g := startSink(t), newCgroup(t, limit)
	c := start(t, setup{
		config: "gateway.yaml", sink: s, cgroup: g, traced: true,
		yaml: []string{straight, "extensions::governor::admission::processing_timeout: 0s"},
	})
	look, began := watch(t, c, 50*time.Millisecond), time.Now()
	load := startSource(t, nobody(c), 256<<10, 4)
	h := s.holdOf("held")
	var held []<-chan answer
	for n := range 11 {
		held = append(held, c.sending(grpcProtocol, traces, one(fmt.Sprint("held ", n), 20*mib)))
		s.wantArrival(h)
	}
	eventually(t, "0.45 of the limit is found alive", func() bool {
		return float64(c.gcs.between(began, time.Now()).live) >= 0.45*limit
	})
	<-time.After(busy)
	load.stop()
	saw := c.gcs.between(began, time.Now())
	moments := look()
	t.Logf("%v; %v; peak %.2f of the limit%s", load.tally(), saw, float64(g.peak())/limit, table(moments))
	if a := load.tally(); a.accepted < a.sent || a.accepted == 0 {
		t.Errorf("%v, want all accepted", a)
	}
	if saw.forcedShare > 0.02 {
		t.Errorf("%v, want 2 %% of forced ones at most", saw)
	}
	s.release(h)
	for _, a := range held {
		wantAccepted(t, <-a)
	}
	if lines := c.log.all(message("Pressure level changed")); len(lines) > 0 {
		t.Errorf("the level changed: %v", lines)
	}
}
