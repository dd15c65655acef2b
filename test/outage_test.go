// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
	"time"
)

const (
	// queueing gives traces the stock exporter with a queue that holds more than there is memory for, and
	// patience without end.
	queueing = `
exporters::otlp_grpc: {endpoint: '${env:SINK}', tls: {insecure: true}, sending_queue: {queue_size: 100000},
  retry_on_failure: {initial_interval: 200ms, max_interval: 1s, max_elapsed_time: 0}}
service::pipelines::traces::exporters: [otlp_grpc]`
	tightLimit = 256 * mib

	bound = "tyrell" // who sends more than an own ceiling allows
)

// lights are who sends little beside a flood.
var lights = []string{"acme", "globex", "initech", "umbrella"}

// TestExporterDownLosesNothing has a server answer Unavailable for a while. It is what the long story begins with.
func TestExporterDownLosesNothing(t *testing.T) {
	t.Parallel()
	o := startOutage(t, true, "")
	o.last(5 * time.Second)
	o.end(3 * time.Second)
	o.checkAcceptance()
}

// outage is a server that is away, who sends meanwhile, and what became of it.
type outage struct {
	t      *testing.T
	sink   *sink
	cgroup *cgroup
	c      *collector
	flood  *source
	paced  []*source

	flooded       tally
	during, after []tally // of the paced
	gcs           gcs
	moments       []moment
}

// startOutage has everybody send to a collector whose server is away.
func startOutage(t *testing.T, governed bool, yaml string) *outage {
	t.Helper()
	o := &outage{t: t, sink: startSink(t), cgroup: newCgroup(t, tightLimit)}
	by := byHeader(t)
	o.c = start(t, setup{config: "gateway.yaml", yaml: append(by.yaml, queueing, yaml), sink: o.sink, cgroup: o.cgroup, traced: true})
	o.c.stopping = !governed // its death is a row
	o.sink.fail(true)
	o.flood = startSource(t, tenant{o.c, "flood", by}, mib, 64)
	for _, name := range lights {
		o.paced = append(o.paced, startPaced(t, tenant{o.c, name, by}, 16<<10, 250*time.Millisecond))
	}
	o.paced = append(o.paced, startPaced(t, tenant{o.c, bound, by}, 16<<10, 50*time.Millisecond))
	return o
}

// last has it last.
func (o *outage) last(d time.Duration) {
	look, began := watch(o.t, o.c, 500*time.Millisecond), time.Now()
	<-time.After(d)
	o.moments, o.gcs = look(), o.c.gcs.between(began, time.Now())
	o.t.Logf("while the server is away:%s", table(o.moments))
	o.t.Logf("%v; OOM kills %d, peak %d MiB of %d", o.gcs, o.cgroup.kills(), o.cgroup.peak()/mib, tightLimit/mib)
	o.flooded = o.flood.tally()
	o.t.Logf("%-9s %v", o.flood.client.name, o.flooded)
	for _, p := range o.paced {
		o.during = append(o.during, p.tally())
		o.t.Logf("%-9s %v", p.client.name, p.tally())
	}
}

// end has the server come back, looks for a while at who is accepted from five seconds later on, and has everything
// arrive. Who was at an own ceiling is accepted once a collection has found the queue empty. So as to take no more
// than a fiftieth of the processors, it comes later than that where they are slow.
func (o *outage) end(goodFor time.Duration) {
	const recovers = 5 * time.Second
	if n := o.cgroup.kills(); n > 0 {
		o.t.Fatalf("%d OOM kills, want none", n)
	}
	o.sink.fail(false)
	look, back := watch(o.t, o.c, 500*time.Millisecond), o.sink.wantBack()
	<-time.After(time.Until(back.Add(recovers)))
	before, queued := make([]tally, len(o.paced)), len(o.flood.ids())
	for i, p := range o.paced {
		before[i] = p.tally()
		queued += before[i].accepted
	}
	if apart := 50 * o.c.gcs.between(time.Time{}, time.Now()).dearest; apart > recovers {
		eventually(o.t, "the queue is empty", func() bool { return o.sink.count() >= queued })
		<-time.After(apart + time.Second)
		before[len(before)-1] = o.paced[len(before)-1].tally() // of the bound
	}
	<-time.After(goodFor)
	o.flood.stop()
	ids := o.flood.ids()
	for i, p := range o.paced {
		p.stop() // and have the answers to all that was sent
		o.after = append(o.after, p.tally().since(before[i]))
		o.t.Logf("%-9s %v since all should be", p.client.name, o.after[i])
		ids = append(ids, p.ids()...)
	}
	eventually(o.t, fmt.Sprintf("all of %d batches arrive", len(ids)), func() bool { return o.sink.count() >= len(ids) })
	o.t.Logf("once it is back, until all of %d batches have come:%s", len(ids), table(look()))
	o.sink.wantOnce(ids)
}

// checkAcceptance looks at the answers, those since the server is back and all.
func (o *outage) checkAcceptance() {
	t := o.t
	for i, p := range o.paced {
		if a := o.after[i]; len(a.refused) > 0 || a.accepted == 0 {
			t.Errorf("%s: %v since all should be", p.client.name, a)
		}
	}
	for _, s := range append(o.paced, o.flood) {
		if a := s.tally(); a.untyped > 0 {
			t.Errorf("%s: %v, want typed refusals only", s.client.name, a)
		}
	}
}
