// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
)

const (
	// asynchronous gives a gateway an exporter with a queue.
	asynchronous = `
exporters::otlp_grpc: {endpoint: 'localhost:1', tls: {insecure: true}}
service::pipelines::traces::exporters: [otlp_grpc]`
	limit = 1536 * mib
)

// TestPoolIsSizedByTheMemoryLimit starts the default gateway under a real memory limit.
func TestPoolIsSizedByTheMemoryLimit(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		yaml     string
		pool     int64
		fraction string
		explicit bool
	}{
		"asynchronous exporter": {yaml: asynchronous, pool: 805306368, fraction: "0.50"},
		"synchronous exporters": {pool: 1207959552, fraction: "0.75"},
		"fraction":              {yaml: "extensions::governor::memory::pool_fraction: 0.6", pool: 966367641, fraction: "0.60"},
		"precise fraction":      {yaml: "extensions::governor::memory::pool_fraction: 0.123", pool: 198105366, fraction: "0.123"},
		"size": {
			yaml: "extensions::governor::memory: {pool_size: 512MB, pool_fraction: 0.1}",
			pool: 512 * mib, explicit: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newCgroup(t, limit)
			c := start(t, setup{config: "gateway.yaml", yaml: []string{k.yaml}, cgroup: g})
			source := g.source
			if k.explicit {
				source = "explicit"
			}
			l := c.wantLine("Memory pool sized")
			if l.bytes("pool") != k.pool || l.text("fraction") != k.fraction || l.text("source") != source || l.bytes("limit") != limit {
				t.Errorf("want pool %d, fraction %q, source %s, limit %d: %v", k.pool, k.fraction, source, limit, l)
			}
			c.wantSizes(k.pool, 0.9*limit)
			for _, l := range c.warnings() {
				t.Errorf("warned: %v", l)
			}
		})
	}
}

// wantSizes checks the gauges of a pool whose governor lets Go have soft bytes.
func (c *collector) wantSizes(pool int64, soft float64) {
	c.t.Helper()
	m := c.scrape()
	budget, unowned := m.sum("otelcol_governor_memory_budget"), m.sum("otelcol_governor_memory_unowned")
	if got := m.sum("otelcol_governor_memory_desired_limit"); got != pool {
		c.t.Errorf("desired limit %d, want the pool's %d", got, pool)
	}
	// A collection may come while telemetry is read.
	if got := m.sum("otelcol_governor_memory_limit"); got > pool || got < min(pool, budget-unowned-10*mib) || got > budget {
		c.t.Errorf("limit %d, want the smaller of the pool %d and what %d leave of the budget %d", got, pool, unowned, budget)
	}
	// A quarter of what Go may hold is headroom, and a process of this kind has some 20 MiB beside its heap.
	most := 0.75 * 0.97 * soft
	if float64(budget) > most || float64(budget) < 0.75*0.97*(soft-50*mib) {
		c.t.Errorf("budget %d, want a little below %.0f", budget, most)
	}
}

// TestPoolFollowsTheMemoryLimit resizes the cgroup of a running collector.
func TestPoolFollowsTheMemoryLimit(t *testing.T) {
	t.Parallel()
	g := newCgroup(t, limit)
	c := start(t, setup{
		config: "gateway.yaml", cgroup: g,
		yaml: []string{asynchronous, "extensions::governor::memory::refresh_interval: 20ms"},
	})
	c.wantLine("Memory pool sized")
	before := int64(limit)
	for n, now := range []int64{1024 * mib, 2048 * mib} {
		g.limit(now)
		l := c.wantNthLine(n+1, "Memory pool resized")
		if l.bytes("pool") != now/2 || l.bytes("pool_before") != before/2 ||
			l.bytes("limit") != now || l.bytes("limit_before") != before {
			t.Errorf("resized from %d to %d: %v", before, now, l)
		}
		c.wantSizes(now/2, 0.9*float64(now))
		before = now
	}
	wantAccepted(t, c.send(grpcProtocol, logs, one("after", 0)))
	c.wantIdle()
}

// TestGoMemoryLimitOfTheOperatorStays sets GOMEMLIMIT, which bounds what Go can hold, and gomemlimit_fraction 0,
// which leaves that to GOGC.
func TestGoMemoryLimitOfTheOperatorStays(t *testing.T) {
	t.Parallel()
	t.Run("GOMEMLIMIT", func(t *testing.T) {
		c := start(t, setup{
			config: "gateway.yaml", cgroup: newCgroup(t, limit),
			yaml: []string{asynchronous}, env: []string{"GOMEMLIMIT=512MiB"},
		})
		c.wantSizes(limit/2, 512*mib)
	})
	t.Run("fraction 0", func(t *testing.T) {
		c := start(t, setup{
			config: "gateway.yaml", cgroup: newCgroup(t, limit),
			yaml: []string{asynchronous, "extensions::governor::memory::gomemlimit_fraction: 0"},
		})
		// Garbage may be as much as live heap, of nine tenths.
		most := 0.45 * limit
		if got := float64(c.scrape().sum("otelcol_governor_memory_budget")); got > most || got < most-50*mib {
			t.Errorf("budget %.0f, want a little below %.0f", got, most)
		}
	})
}

// TestExplicitPoolAboveTheLimitIsAWarning names both.
func TestExplicitPoolAboveTheLimitIsAWarning(t *testing.T) {
	t.Parallel()
	c := start(t, setup{
		config: "gateway.yaml", cgroup: newCgroup(t, limit),
		yaml: []string{"extensions::governor::memory::pool_size: 2GiB"},
	})
	l := c.wantLine("The memory pool is larger than the memory limit; lower 'memory::pool_size'")
	if got, want := fmt.Sprint(l.text("level"), l.bytes("pool"), l.bytes("limit")), fmt.Sprint("warn", 2048*mib, limit); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
