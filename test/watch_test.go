// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// moment is what a governor's telemetry says at one time. Sizes are bytes.
type moment struct {
	after                              time.Duration
	level                              int64
	held, carried, wire, unowned, room int64
	budget, forced                     int64
	survival                           float64
}

// watch looks at c each time an interval has passed, for as long as c answers. The function it returns ends that and
// returns what was seen.
func watch(t *testing.T, c *collector, every time.Duration) (stop func() []moment) {
	began, end, done := time.Now(), make(chan struct{}), make(chan struct{})
	var seen []moment
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if m, err := c.tryScrape(); err == nil {
				seen = append(seen, m.moment(time.Since(began)))
			}
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	}()
	stop = sync.OnceValue(func() []moment {
		close(end)
		<-done
		return seen
	})
	t.Cleanup(func() { stop() })
	return stop
}

func (m families) moment(after time.Duration) moment {
	return moment{
		after:    after,
		level:    m.sum("otelcol_governor_pressure_level"),
		held:     m.sum("otelcol_governor_memory_usage"),
		carried:  m.sum("otelcol_governor_memory_carried"),
		wire:     m.sum("otelcol_governor_wire_usage"),
		unowned:  m.sum("otelcol_governor_memory_unowned"),
		room:     m.sum("otelcol_governor_memory_limit"),
		budget:   m.sum("otelcol_governor_memory_budget"),
		forced:   m.sum("otelcol_governor_gc_forced"),
		survival: m.value("otelcol_governor_memory_survival"),
	}
}

// level returns the pressure's level: 0 for ok, 1 for elevated, 2 for critical.
func (c *collector) level() int64 {
	c.t.Helper()
	return c.scrape().sum("otelcol_governor_pressure_level")
}

// turns are the changes of level that the log tells of.
func (c *collector) turns() []line { return c.log.all(message("Pressure level changed")) }

// table shows some of the moments.
func table(moments []moment) string {
	const most = 16
	var s strings.Builder
	s.WriteString("\n   after level   held carried   wire unowned   room budget MiB  forced survival")
	for i, m := range moments {
		if i%max(1, len(moments)/most) != 0 {
			continue
		}
		in := func(bytes int64) float64 { return float64(bytes) / mib }
		fmt.Fprintf(&s, "\n%7.1fs %5d %6.1f %7.1f %6.1f %7.1f %6.1f %6.1f      %6d %8.3f", m.after.Seconds(), m.level,
			in(m.held), in(m.carried), in(m.wire), in(m.unowned), in(m.room), in(m.budget), m.forced, m.survival)
	}
	return s.String()
}
