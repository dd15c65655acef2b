// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// persistent gives logs an exporter whose queue is in files, which shrink when they are empty: the first
// %s is their directory and the second that of what is made meanwhile.
const persistent = `
extensions::file_storage: {directory: '%s', timeout: 5s,
  compaction: {on_rebound: true, directory: '%s', rebound_needed_threshold_mib: 10, rebound_trigger_threshold_mib: 5, check_interval: 1s}}
exporters::otlp_grpc: {endpoint: '${env:SINK}', tls: {insecure: true}, compression: none,
  sending_queue: {queue_size: 100000, storage: file_storage},
  retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0}}
service::extensions: [governor, file_storage]
service::pipelines::logs::exporters: [otlp_grpc]`

// bulky is a batch of logs that takes about as much on the wire and on disk as in memory.
func bulky(id string, size int) batch { return batch{ids: []string{id, strings.Repeat("x", size)}} }

// TestLowDiskRefusesUntilItHasSpace fills a small disk by a queue whose server is away. The governor finds its
// directory in the configuration.
func TestLowDiskRefusesUntilItHasSpace(t *testing.T) {
	t.Parallel()
	const size = 64 * mib
	m, s := newMounts(t), startSink(t)
	dir := m.tmpfs(size, 44*mib)
	c := start(t, setup{
		config: "gateway.yaml", sink: s, mounts: m,
		yaml: []string{"extensions::governor::memory::pool_size: 64MiB", fmt.Sprintf(persistent, dir, t.TempDir())},
	})
	path := "file_path=" + dir
	gauges := func() (free, reserve, low int64) {
		m := c.scrape()
		return m.sum("otelcol_governor_disk_free", path), m.sum("otelcol_governor_disk_limit", path), m.sum("otelcol_governor_disk_low", path)
	}
	eventually(t, "the disk is watched", func() bool {
		free, reserve, low := gauges()
		return free > 15*mib && reserve == size/10 && low == 0
	})
	s.fail(true)
	sent, refused := 0, answer{}
	for tick := time.Tick(100 * time.Millisecond); sent < 1000; sent++ { // 2.5 MiB a second, so that nobody is surprised
		<-tick
		if refused = c.send(grpcProtocol, logs, bulky(fmt.Sprint("log ", sent), 256<<10)); refused.status.Code() != codes.OK {
			break
		}
	}
	wantLater(t, refused, "disk_low")
	for _, p := range protocols {
		wantLater(t, c.send(p, traces, one("trace", 0)), "disk_low")
	}
	l := c.wantLine("A disk is low")
	free, reserve, low := gauges()
	t.Logf("after %d batches of 256 KiB %d bytes are free and the reserve is %d", sent, free, reserve)
	if low != 1 || free >= reserve || free == 0 || l.text("path") != dir || l.bytes("reserve") != reserve {
		t.Errorf("%d bytes are free and the reserve is %d, low %d: %v", free, reserve, low, l)
	}
	s.fail(false)
	c.wantLine("A disk has space again")
	eventually(t, "new work is let in", func() bool {
		return c.send(grpcProtocol, logs, one("afterwards", 0)).status.Code() == codes.OK
	})
	if free, reserve, low := gauges(); low != 0 || free < reserve {
		t.Errorf("afterwards %d bytes are free and the reserve is %d, low %d", free, reserve, low)
	}
	eventually(t, "everything arrives", func() bool { return s.count() == sent+2 }) // and all bodies are the same
}

// TestPageCacheOfAQueueIsNoPressure writes more than the memory limit to the files of a queue whose server is not there.
// The kernel keeps as much of them in memory as it can, and takes it back when it likes.
func TestPageCacheOfAQueueIsNoPressure(t *testing.T) {
	t.Parallel()
	const limit, batches = 256 * mib, 300
	g := newCgroup(t, limit)
	c := start(t, setup{
		config: "gateway.yaml", cgroup: g, traced: true,
		yaml: []string{fmt.Sprintf(persistent, t.TempDir(), t.TempDir()), "exporters::otlp_grpc::endpoint: localhost:1"},
	})
	look, began := watch(t, c, 100*time.Millisecond), time.Now()
	for n := range batches {
		wantAccepted(t, c.send(grpcProtocol, logs, bulky(fmt.Sprint("log ", n), mib)))
	}
	cached := g.pageCache()
	t.Logf("%.0f %% of the limit is page cache, kills %d; %v%s",
		100*float64(cached)/limit, g.kills(), c.gcs.between(began, time.Now()), table(look()))
	if cached < limit/2 {
		t.Errorf("%d bytes are page cache, want %d for this to tell something", cached, int64(limit/2))
	}
	if turns := c.turns(); len(turns) > 0 {
		t.Errorf("the level changed: %v", turns)
	}
}
