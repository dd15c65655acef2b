// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadata"
	"github.com/otel-governor/otel-governor/internal/advice"
	"github.com/otel-governor/otel-governor/internal/door"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/pressure"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

var (
	_ extension.Extension                         = (*governor)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*governor)(nil)
	_ extensioncapabilities.PipelineWatcher       = (*governor)(nil)
	_ admission.Governor                          = (*governor)(nil)
)

// governor composes what decides over batches, and keeps the size of the pool in step with the machine.
type governor struct {
	id        component.ID
	config    *Config
	logger    *zap.Logger
	telemetry *telemetry
	kernel    kernel                       // what it says; replaced in tests
	onGC      func(f func()) (stop func()) // notices collections; replaced in tests
	pool      *pool.Pool
	guard     *guard
	disks     disks
	door      *door.Door
	signals   atomic.Pointer[map[string]string] // of HTTP paths
	tenants   *registry
	allowed   map[string]bool // the only tenants there are, if not empty
	epoch     time.Time
	leases    sync.Pool // of leases that were not granted, so that refusing costs little
	overrides *tenant.OverridesFile

	everyone       map[string]*ceilings // what holds for those who did not register, by signal
	maxBatchMemory atomic.Int64
	identified     atomic.Bool  // tenants are told apart
	named          atomic.Bool  // by their data, among others
	nobody         pool.Account // of requests whose data will tell whose they are
	asynchronous   atomic.Bool  // batches live on in queues
	countsBytes    atomic.Bool  // some rate is in bytes

	mu struct {
		sync.Mutex
		sizing     sizing
		announced  bool // the size has been logged
		unreadable bool // the last reading failed
		soft       softLimit
		users      map[user]*ceilings
	}

	health  health // of the watch alone
	stop    func() // ends the notice of collections
	cancel  context.CancelFunc
	watches sync.WaitGroup
}

func newGovernor(set extension.Settings, config *Config) (*governor, error) {
	a := config.Admission
	settings := pool.Settings{Slots: a.MaxConcurrent, MaxQueued: a.MaxQueued, QueueTimeout: a.QueueTimeout}
	if config.Mode == ModeObserve { // nobody waits for a limit that is not enforced
		settings.MaxQueued, settings.QueueTimeout = 0, 0
	}
	g := &governor{
		id:     set.ID,
		config: config,
		epoch:  time.Now(),
		leases: sync.Pool{New: func() any { return new(lease) }},
		logger: set.Logger,
		kernel: newKernel(),
		onGC:   pressure.OnGC,
		pool:   pool.New(settings),
	}
	g.guard = newGuard(&config.Guard, g.epoch)
	g.newTenants()
	g.mu.soft.fraction = config.Memory.GoMemLimitFraction
	g.mu.users = map[user]*ceilings{}
	var err error
	g.telemetry, err = newTelemetry(set.TelemetrySettings)
	g.everyone = map[string]*ceilings{}
	for signal := range g.telemetry.signals {
		g.everyone[signal] = g.newCeilings(signal)
	}
	g.door = g.newDoor()
	return g, err
}

// Start sizes the pool and begins to watch the memory limit. Until the configuration is known, which
// comes next in a Collector, the pool has the cautious size.
func (g *governor) Start(_ context.Context, host component.Host) error {
	if err := g.alone(host); err != nil {
		return err
	}
	m, err := g.kernel.limit()
	if err != nil {
		return fmt.Errorf("the memory limit cannot be read: %w", err)
	}
	g.mu.Lock()
	g.mu.soft.follow(m.limit)
	r := pressure.ReadRuntime()
	g.guard.runtime.Store(&r)
	if err := g.begin(m, r); err != nil {
		g.mu.Unlock()
		return err
	}
	g.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.health.host = host
	g.disks.watch(g.config.Guard.Disks, nil)
	g.disks.check(ctx, g)
	g.telemetry.GovernorGcForced.Add(ctx, 0) // so that it is there from the start
	g.look(ctx)                              // so that whoever comes first is judged by what there is
	var reader pressure.RuntimeReader
	g.stop = g.onGC(func() { g.collected(reader.Read()) })
	for _, watch := range [...]func(context.Context){g.watch, g.watchDisks, g.collectGarbage} {
		g.watches.Go(func() { watch(ctx) })
	}
	return nil
}

// begin gives the pool its first size, and takes the overrides.
func (g *governor) begin(m machine, r pressure.Runtime) error {
	if g.config.Mode == ModeEnforce && r.MemoryLimit == math.MaxInt64 && r.GCPercent < 0 {
		return errors.New("garbage collection is off (GOGC=off) and Go has no memory limit, so nothing bounds the heap:" +
			" set GOMEMLIMIT, or 'memory::gomemlimit_fraction' above 0, or GOGC to a number")
	}
	if err := g.config.resolve(m, false, r).check(g.config); err != nil {
		return err // not even as large as it could be
	}
	g.asynchronous.Store(true)
	g.resizeLocked(m)
	if err := g.loadOverrides(); err != nil {
		return err
	}
	return g.telemetry.observe(g)
}

// now is the time.
func (g *governor) now() time.Time { return g.at(g.clock()) }

// clock is the time since the governor was made, read from the monotonic clock alone, which takes half as long as
// reading both, and at is that time as one.
func (g *governor) clock() time.Duration             { return time.Since(g.epoch) }
func (g *governor) at(clock time.Duration) time.Time { return g.epoch.Add(clock) }

// alone returns an error if the host has another governor: a process has only one memory.
func (g *governor) alone(host component.Host) error {
	var ids []string
	for id := range maps.Keys(host.GetExtensions()) {
		if id.Type() == metadata.Type {
			ids = append(ids, strconv.Quote(id.String()))
		}
	}
	if len(ids) > 1 {
		slices.Sort(ids)
		return fmt.Errorf("service::extensions has %d governors, %v: a process has one memory, so name only one of them", len(ids), ids)
	}
	return nil
}

// NotifyConfigSnapshot implements extensioncapabilities.ConfigSnapshotWatcher: it decides what share of
// the memory limit becomes the pool.
func (g *governor) NotifyConfigSnapshot(ctx context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	a := advice.Read(snapshot.Effective(), g.id.String(), len(g.config.Tenants.MetadataKeys) > 0)
	for _, w := range a.Warnings {
		g.logger.Warn(w)
	}
	g.disks.watch(g.config.Guard.Disks, a.Directories)
	g.disks.check(ctx, g)
	g.signals.Store(&a.Signals)
	if !a.Streams { // else whoever set it knows better
		g.door.MaxStreams = g.config.Admission.MaxConcurrent + g.config.Admission.MaxQueued
	}
	if a.Message > 0 {
		g.door.MaxMessage = a.Message
	}
	return g.settle(a.Holders)
}

// Ready implements extensioncapabilities.PipelineWatcher. A host that told nothing of its configuration
// is taken for one that keeps data in queues.
func (g *governor) Ready() error {
	g.warnOfTenants()
	g.mu.Lock()
	announced := g.mu.announced
	g.mu.Unlock()
	if announced {
		return nil
	}
	return g.settle([]string{"unknown configuration"})
}

// settle gives the pool its size, now that it is known what keeps data, and announces it.
func (g *governor) settle(holders []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asynchronous.Store(len(holders) > 0)
	g.resizeLocked(g.mu.sizing.machine)
	s := g.mu.sizing
	if err := s.check(g.config); err != nil {
		return err
	}
	g.mu.announced = true
	g.logger.Info("Memory pool sized", append(s.fields(),
		zap.String("mode", string(g.config.Mode)),
		zap.Int64("budget", s.budget),
		zap.Int64("max_batch_memory", g.maxBatchMemory.Load()),
		zap.Strings("asynchronous", holders))...)
	s.warn(g.logger)
	return nil
}

// resizeLocked makes the pool follow m, and what else is in memory.
func (g *governor) resizeLocked(m machine) {
	s := g.config.resolve(m, g.asynchronous.Load(), *g.guard.runtime.Load())
	g.mu.sizing = s
	g.maxBatchMemory.Store(s.maxBatchMemory(g.config))
	books := g.guard.books
	books.Resize(pressure.Size{Pool: s.pool, Budget: s.budget, Critical: s.critical})
	room, reserved := books.Room()
	g.pool.Resize(pool.Size{
		Capacity:  room,
		Best:      books.Attainable(),
		Reserved:  reserved,
		MaxQueued: share(s.capacity(), g.config.Admission.MaxQueuedFraction),
		Squeezed:  g.squeezed(),
	})
}

// squeezed reports whether everybody is held to a fair share: memory is short, and more because of what stays in
// queues than because of what is being worked on. The latter comes back by itself, and the line serves it to those
// who have least; held to shares, a flood beside a trickle got 0.6 of what both left free (simulated), for nothing.
func (g *governor) squeezed() bool {
	st := g.pool.Stats()
	return g.guard.levels.Level() >= pressure.Elevated && g.config.Mode == ModeEnforce && st.Carried+st.Owed > st.Held
}

// watch looks at the pressure on memory, follows the memory limit, which the kernel lets others change while the
// process runs, forgets idle tenants, follows the overrides, and logs what was refused meanwhile.
func (g *governor) watch(ctx context.Context) {
	check := time.NewTicker(g.config.Guard.CheckInterval)
	defer check.Stop()
	refresh := time.NewTicker(g.config.Memory.RefreshInterval)
	defer refresh.Stop()
	tenants := time.NewTicker(tenantsInterval)
	defer tenants.Stop()
	summary := time.NewTicker(summaryInterval)
	defer summary.Stop()
	for {
		select {
		case <-check.C:
			g.look(ctx)
		case <-g.guard.wake:
			if g.guard.rested(g.clock()) {
				g.look(ctx)
			}
		case <-refresh.C:
			g.refresh(ctx)
		case now := <-tenants.C:
			g.tenants.Sweep(now)
			g.reloadOverrides()
		case <-summary.C:
			g.summarize()
		case <-ctx.Done():
			return
		}
	}
}

// refresh reads the limit again. A reading that fails changes nothing but what telemetry shows.
func (g *governor) refresh(ctx context.Context) {
	m, err := g.kernel.limit()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.telemetry.unreadable(ctx, "memory_limit")
		if !g.mu.unreadable {
			g.logger.Warn("The memory limit cannot be read; the last one stays in force", zap.Error(err))
		}
		g.mu.unreadable = true
		return
	}
	g.mu.unreadable = false
	before := g.mu.sizing
	if m != before.machine {
		g.mu.soft.follow(m.limit)
		r := pressure.ReadRuntime()
		g.guard.runtime.Store(&r)
	}
	g.resizeLocked(m)
	if s := g.mu.sizing; m != before.machine {
		g.logger.Info("Memory pool resized", append(s.fields(),
			zap.Int64("budget", s.budget),
			zap.Int64("pool_before", before.pool),
			zap.Int64("limit_before", before.limit))...)
		s.warn(g.logger)
	}
}

// NotReady implements extensioncapabilities.PipelineWatcher. Everybody who waits is answered. What fits
// at once is still admitted, since batches that were accepted flush through limiters further down.
func (g *governor) NotReady() error {
	g.pool.Drain()
	g.door.Drain()
	return nil
}

// Shutdown refuses everything from now on and leaves Go's memory limit as Start found it.
func (g *governor) Shutdown(context.Context) error {
	g.pool.Close()
	if g.cancel != nil {
		g.stop()
		g.cancel()
		g.watches.Wait()
		g.kernel.close()
	}
	g.summarize()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.soft.restore()
	g.telemetry.Shutdown()
	return nil
}
