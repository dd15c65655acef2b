// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"
	"time"
)

// TestNothingIsDroppedWhileTheLimitMoves halves and restores the limit of a collector that is at work.
func TestNothingIsDroppedWhileTheLimitMoves(t *testing.T) {
	t.Parallel()
	const limit, each = 512 * mib, 3 * time.Second
	s, g := startSink(t), newCgroup(t, limit)
	c := start(t, setup{
		config: "gateway.yaml", cgroup: g, sink: s, traced: true,
		yaml: []string{asynchronous, "exporters::otlp_grpc::endpoint: '${env:SINK}'", "extensions::governor::memory::refresh_interval: 100ms"},
	})
	load := startSource(t, nobody(c), 128<<10, 4)
	began, before := time.Now(), int64(limit)
	for n, now := range []int64{limit / 2, limit} {
		<-time.After(each)
		g.limit(now)
		l := c.wantNthLine(n+1, "Memory pool resized")
		if l.bytes("pool") != now/2 || l.bytes("pool_before") != before/2 ||
			l.bytes("limit") != now || l.bytes("limit_before") != before {
			t.Errorf("resized from %d to %d: %v", before, now, l)
		}
		c.wantSizes(now/2, 0.9*float64(now))
		before = now
	}
	<-time.After(each)
	load.stop()
	ids := load.ids()
	t.Logf("%v; %v; kills %d", load.tally(), c.gcs.between(began, time.Now()), g.kills())
	if a := load.tally(); a.accepted < a.sent || a.accepted == 0 {
		t.Errorf("%v, want all accepted", a)
	}
	eventually(t, "everything arrives", func() bool { return s.count() >= len(ids) })
	s.wantOnce(ids)
}
