// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/cgroupmem"
	"github.com/otel-governor/otel-governor/internal/pressure"
)

// guard knows the memory that no lease covers, and refuses everybody where there is too little left.
type guard struct {
	config *GuardConfig
	books  *pressure.Books
	levels *pressure.Levels

	runtime  atomic.Pointer[pressure.Runtime] // as of the last collection
	arrivals atomic.Int64                     // since the last sample
	looked   atomic.Int64                     // when that was taken, by the governor's clock
	wake     chan struct{}                    // to take a sample now
	collect  chan struct{}                    // to collect garbage now
	refused  atomic.Pointer[admission.Error]

	// Of the watch alone.
	reader pressure.RuntimeReader
	failed map[cgroupmem.Probe]bool // probes that failed the last time
}

// lookPause is the least time between two samples: at 30 µs each they take 0.3 % of a processor, however many
// batches arrive.
const lookPause = 10 * time.Millisecond

// lively is the part of the room, one in so many bytes, from which on a sample is taken once it is known what is alive.
// With less alive nothing is at stake before the next tick, and collections come 70 times a second then: the samples
// were 0.6 % of all that a busy processor did.
const lively = 4

func newGuard(c *GuardConfig, now time.Time) *guard {
	return &guard{
		config: c,
		books:  pressure.NewBooks(now, pressure.Settings{GCFraction: c.GCCPUFraction}),
		levels: pressure.NewLevels(now, pressure.LevelSettings{
			Hold: c.Hold, Elevated: c.ElevatedFraction, Critical: c.CriticalFraction, MachineReserve: c.MachineReserveFraction,
		}),
		wake:    make(chan struct{}, 1),
		collect: make(chan struct{}, 1),
		failed:  map[cgroupmem.Probe]bool{},
	}
}

// poke sends unless something was sent that nobody has received.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// arrived counts a batch that is asked for, and has a sample taken after so many of them: a burst must not
// outrun the clock.
func (g *guard) arrived(clock time.Duration) {
	if g.arrivals.Add(1) >= g.config.CheckEvery && g.rested(clock) {
		poke(g.wake)
	}
}

// rested reports whether the last sample is long enough ago for another one.
func (g *guard) rested(clock time.Duration) bool {
	return clock-time.Duration(g.looked.Load()) >= lookPause
}

// refuses returns why nobody gets in, or nil.
func (g *guard) refuses(ctx context.Context) *admission.Error {
	e := g.refused.Load()
	if e == nil || e.Reason == admission.MemoryPressure && g.config.ExemptLoopback && local(ctx) {
		return nil
	}
	own := *e // which is completed for whom it is told
	return &own
}

// local reports whether a request comes from this machine.
func local(ctx context.Context) bool {
	addr := client.FromContext(ctx).Addr
	if addr == nil {
		return false
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		host = addr.String()
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// wants are the refusals that a collection of garbage may put an end to.
var wants = map[admission.Reason]bool{
	admission.MemoryContended: true, admission.TenantMemory: true, admission.MemoryPressure: true,
	admission.QueueFull: true, admission.QueueTimeout: true,
}

// short tells that somebody was refused for this reason. Where the last look at what is alive is too long ago
// for the refusal to rest on it, another one is taken beside the request.
func (g *guard) short(now time.Time, reason admission.Reason) {
	if wants[reason] && g.books.Refused(now) {
		poke(g.collect)
	}
}

// collected is told of the end of a collection of garbage.
func (g *governor) collected(r pressure.Runtime) {
	g.guard.runtime.Store(&r)
	st := g.pool.Stats()
	g.guard.books.Noticed(g.now(), r, st.Existing, st.Coming)
	if r.Live > st.Capacity/lively {
		poke(g.guard.wake)
	}
}

// collectGarbage collects when it is asked to.
func (g *governor) collectGarbage(ctx context.Context) {
	for {
		select {
		case <-g.guard.collect:
			g.telemetry.GovernorGcForced.Add(ctx, 1)
			runtime.GC()
		case <-ctx.Done():
			return
		}
	}
}

// look takes a sample, and has the pool and the level follow it.
func (g *governor) look(ctx context.Context) {
	clock := g.clock()
	now := g.at(clock)
	g.guard.looked.Store(int64(clock))
	g.guard.arrivals.Store(0)
	st := g.pool.Stats()
	used := st.Held + st.Owed + st.QueuedBytes
	if g.guard.books.Tick(now, used) {
		poke(g.guard.collect)
	}
	kernel := g.kernel.sample()
	g.count(ctx, kernel.Failures)

	if g.judge(now, kernel, used) {
		g.door.Shed()
	}
}

// judge has the pool and the level follow a sample, and reports whether the level has become critical.
func (g *governor) judge(now time.Time, kernel cgroupmem.Sample, used int64) (critical bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resizeLocked(g.mu.sizing.machine)
	s := pressure.Sample{
		Limit: g.mu.sizing.limit,
		Live:  g.guard.runtime.Load().Live, CriticalLive: g.mu.sizing.critical,
		StallSome: max(0, kernel.Pressure.Some), StallFull: max(0, kernel.Pressure.Full),
	}
	st := g.pool.Stats()
	s.Used, s.Capacity = used+st.Carried, max(1, st.Capacity)
	if kernel.Unreclaimable != cgroupmem.Unknown && g.mu.sizing.chosen {
		s.Unreclaimable = max(0, kernel.Unreclaimable-g.guard.reader.Read().Free)
	}
	if kernel.MachineTotal != cgroupmem.Unknown {
		s.Machine, s.MachineUsed = kernel.MachineTotal, kernel.MachineTotal-kernel.MachineAvailable
	}
	if t, changed := g.guard.levels.Observe(now, s); changed {
		g.turned(t)
		g.resizeLocked(g.mu.sizing.machine)
		critical = t.To == pressure.Critical
	}
	g.decide()
	g.health.follow(now, g.guard.levels.State())
	return critical
}

// decide makes the answer for everybody, if nobody gets in.
func (g *governor) decide() {
	var e *admission.Error
	if s := g.guard.levels.State(); s.Level == pressure.Critical {
		e = &admission.Error{Reason: admission.MemoryPressure, Observed: s.Observed, Limit: s.Threshold}
		if s.Cause == pressure.CauseStallFull {
			e.Unit = "%"
		}
	} else if d := g.disks.lowest(); d.Low {
		e = &admission.Error{Reason: admission.DiskLow, Observed: d.Free, Limit: d.Reserve}
	}
	g.guard.refused.Store(e)
}

// count makes known what the kernel would not tell.
func (g *governor) count(ctx context.Context, failures []cgroupmem.Failure) {
	for _, f := range failures {
		g.telemetry.unreadable(ctx, string(f.Probe))
		if !g.guard.failed[f.Probe] {
			g.logger.Warn("What the kernel says cannot be read; what depends on it is left out of account",
				zap.String("probe", string(f.Probe)), zap.Error(f.Err))
		}
	}
	clear(g.guard.failed)
	for _, f := range failures {
		g.guard.failed[f.Probe] = true
	}
}

// turned logs a change of level and what caused it.
func (g *governor) turned(t pressure.Transition) {
	log := g.logger.Info
	if t.To > t.From {
		log = g.logger.Warn
	}
	st, books := g.pool.Stats(), g.guard.books.Stats()
	log("Pressure level changed",
		zap.Stringer("from", t.From), zap.Stringer("to", t.To), zap.Duration("lasted", t.Lasted),
		zap.String("cause", string(t.Cause)), zap.Int64("observed", t.Observed), zap.Int64("threshold", t.Threshold),
		zap.Int64("held", st.Held), zap.Int64("carried", st.Carried), zap.Int64("wire", st.Owed),
		zap.Int64("unowned", books.Unowned), zap.Int64("room", st.Capacity), zap.Int64("budget", g.mu.sizing.budget),
		zap.Int64("live", g.guard.runtime.Load().Live), zap.Float64("survival", books.Survival))
}
