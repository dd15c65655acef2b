// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/cgroupmem"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

func TestWhatALeaseLeavesStaysWithItsTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := queued(t) // a tenant may have 32 MiB
		lease, err := admit(t, g, "a", 20*mib, 1)
		require.NoError(t, err)
		gone := lease.ReleaseLater(nil)
		require.Zero(t, g.gauge(t, "governor.memory.usage"), "its place and its bytes are given back")
		require.Zero(t, g.gauge(t, "governor.concurrency.usage"))
		require.EqualValues(t, 20*mib, g.gauge(t, "governor.memory.carried"))

		refused := requireReason(t, admission.TenantMemory, second(admit(t, g, "a", 20*mib, 1)))
		require.EqualValues(t, 40*mib, refused.Observed)
		other, err := admit(t, g, "b", 20*mib, 1)
		require.NoError(t, err, "it is nobody else's")
		other.Release(nil)

		lease.Release(nil)
		lease.ReleaseLater(nil)()
		require.EqualValues(t, 20*mib, g.gauge(t, "governor.memory.carried"), "a lease ends once")
		elapse(time.Hour)
		require.EqualValues(t, 1, g.tenants.Len(), "who carries something is not forgotten")

		gone()
		gone()
		require.Zero(t, g.gauge(t, "governor.memory.carried"))
		require.Zero(t, g.pool.Stats().Carried)
		again, err := admit(t, g, "a", 20*mib, 1)
		require.NoError(t, err)
		again.Release(nil)
		elapse(time.Hour)
		require.Zero(t, g.tenants.Len())
	})
}

// queued is a shared governor before an exporter with a queue.
func queued(t *testing.T) *tested {
	g := shared(t, nil)
	require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t, asynchronous)))
	return g
}

func TestWhereNothingKeepsDataNothingIsCarried(t *testing.T) {
	g := shared(t, nil)
	c, _, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces"})
	require.NoError(t, err)
	require.False(t, c.Outlived())
	lease, err := admit(t, g, "a", 20*mib, 1)
	require.NoError(t, err)
	lease.ReleaseLater(nil)()
	require.Zero(t, g.pool.Stats().Held+g.pool.Stats().Carried)
	require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t, asynchronous)))
	require.True(t, c.Outlived())
}

func TestWhatIsLeftOfABatchOfSeveralTenantsIsTheirsByShare(t *testing.T) {
	g := queued(t)
	r := traces(8*mib, 1)
	r.Tenant, r.Others = "a", []admission.Share{{Tenant: "b", Memory: 2 * mib, Items: 1}}
	lease, err := g.Admit(t.Context(), r)
	require.NoError(t, err)
	gone := lease.ReleaseLater(nil)
	for name, want := range map[string]int64{"a": 8 * mib, "b": 2 * mib} {
		m := g.tenants.Get(name, false)
		bytes, slots := g.pool.AccountStats(&m.Value.pool)
		require.Equal(t, []int64{want, 0}, []int64{bytes, slots}, name)
		m.Unpin()
	}
	gone()
	require.Zero(t, g.pool.Stats().Carried)
}

func TestAPartLeavesWhatPassedThroughIt(t *testing.T) {
	g := queued(t)
	estimate := traces(10*mib, 1)
	estimate.Provisional = true
	root, err := g.Admit(from(t.Context(), "x-tenant", "a"), estimate)
	require.NoError(t, err)
	ctx := from(t.Context(), "x-tenant", "a")
	first, err := root.Settle(ctx, traces(6*mib, 1))
	require.NoError(t, err)
	second, err := root.Settle(ctx, traces(4*mib, 1)) // of another pipeline, with a copy of its own
	require.NoError(t, err)
	gone := first.ReleaseLater(nil)
	require.EqualValues(t, 6*mib, g.pool.Stats().Carried)
	goneToo := second.ReleaseLater(nil)
	require.EqualValues(t, 10*mib, g.pool.Stats().Carried)
	root.Release(nil)
	gone()
	goneToo()
	require.Zero(t, g.pool.Stats().Carried+g.pool.Stats().Held)

	late, err := root.Settle(ctx, traces(mib, 1))
	require.ErrorIs(t, err, admission.ErrReleased)
	require.Nil(t, late)
}

func TestWhatAPartOfAnEndedBatchLeavesIsNobodys(t *testing.T) {
	g := queued(t)
	root, err := admit(t, g, "a", mib, 1)
	require.NoError(t, err)
	part, err := root.Settle(t.Context(), traces(2*mib, 1))
	require.NoError(t, err)
	root.Release(nil)
	part.ReleaseLater(nil)()
	require.Zero(t, g.pool.Stats().Carried+g.pool.Stats().Held)
}

// watched is a host that remembers what components say of themselves.
type watchedHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (h *watchedHost) GetExtensions() map[component.ID]component.Component { return nil }

func (h *watchedHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *watchedHost) statuses() (all []componentstatus.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		all = append(all, e.Status())
	}
	return all
}

// gaugeOf is gauge for what is no sum.
func (g *tested) gaugeOf(t *testing.T, name string) int64 {
	t.Helper()
	m, err := g.telemetry.GetMetric("otelcol_" + name)
	require.NoError(t, err)
	return m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
}

// used makes the kernel say that this much of the limit of 1 GiB cannot be taken back.
func (k *fakeKernel) used(bytes int64) {
	k.usage.Store(&cgroupmem.Sample{
		Unreclaimable: bytes, MachineTotal: cgroupmem.Unknown, MachineAvailable: cgroupmem.Unknown,
	})
}

func TestUnderCriticalPressureNobodyNewGetsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var host watchedHost
		g := create(t, func(c *Config) { c.Guard.ExemptLoopback = true })
		require.NoError(t, g.Start(t.Context(), &host))
		require.NoError(t, g.Ready())
		held, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)

		const tooMuch = 2 * gib // more than the limit, whatever the test's own heap keeps free
		g.kernel.used(tooMuch)
		elapse(time.Second)
		require.EqualValues(t, 2, g.gaugeOf(t, "governor.pressure.level"))
		refused := requireReason(t, admission.MemoryPressure, second(g.Admit(t.Context(), traces(mib, 1))))
		require.Greater(t, refused.Observed, refused.Limit)
		require.EqualValues(t, gib*95/100, refused.Limit)
		requireReason(t, admission.MemoryPressure, g.Check(t.Context(), traces(0, 0)))
		require.NoError(t, held.Grow(t.Context(), mib), "what is held may grow")
		part, err := held.Settle(t.Context(), traces(3*mib, 1))
		require.NoError(t, err, "what is in memory is")
		part.Release(nil)

		local := client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv6loopback, Port: 1}})
		mine, err := g.Admit(local, traces(mib, 1))
		require.NoError(t, err, "the machine's own telemetry is exempt here")
		mine.Release(nil)

		require.Empty(t, host.statuses(), "a burst is no failure")
		elapse(10 * time.Second)
		require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.statuses())

		g.kernel.used(mib)
		elapse(3 * time.Second)
		require.Zero(t, g.gaugeOf(t, "governor.pressure.level"))
		require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.statuses())
		again, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)
		again.Release(nil)
		held.Release(nil)
		lines := g.logs.FilterMessage("Pressure level changed").All()
		require.Len(t, lines, 2)
		require.Equal(t, "unreclaimable", lines[0].ContextMap()["cause"])
	})
}

func TestUnderPressureWhoNamesItsTenantIsRefusedUnderThatName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, nil)
		g.kernel.used(2 * gib)
		elapse(time.Second)
		named := requireReason(t, admission.MemoryPressure, g.Check(from(t.Context(), "x-tenant", "a"), traces(0, 0)))
		require.Equal(t, "a", named.Tenant)
		nobody := requireReason(t, admission.MemoryPressure, g.Check(t.Context(), traces(0, 0)))
		require.Equal(t, tenant.DefaultName, nobody.Tenant)
	})
}

func TestALoadThatIsObservedIsNotRefusedForPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, func(c *Config) { c.Mode = ModeObserve })
		g.kernel.used(2 * gib)
		elapse(time.Second)
		require.NoError(t, g.Check(t.Context(), traces(0, 0)))
		l, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)
		l.Release(nil)
		require.EqualValues(t, 1, g.gauge(t, "governor.observed_refusals"))
	})
}

func TestALowDiskRefusesNewWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, most := 1.0, int64(1)<<62 // no disk has more free than its size
		g := start(t, func(c *Config) {
			c.Guard.Disks = []DiskConfig{{Path: t.TempDir(), ReserveFraction: &all, ReserveSize: &most}}
		})
		elapse(time.Second)
		refused := requireReason(t, admission.DiskLow, second(g.Admit(t.Context(), traces(mib, 1))))
		require.Less(t, refused.Observed, refused.Limit)
		require.EqualValues(t, 1, g.gaugeOf(t, "governor.disk.low"))
		require.Equal(t, refused.Limit, g.gauge(t, "governor.disk.limit"))
		require.Equal(t, 1, g.logs.FilterMessage("A disk is low; new work is refused until it has more space").Len())

		g.disks.watch([]DiskConfig{{Path: t.TempDir(), ReserveSize: new(int64)}}, nil)
		elapse(2 * time.Second)
		l, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)
		l.Release(nil)
	})
}

func TestADiskThatCannotBeReadIsCountedAndRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, func(c *Config) { c.Guard.Disks = []DiskConfig{{Path: t.TempDir() + "/gone"}} })
		elapse(3 * time.Second)
		require.GreaterOrEqual(t, g.gauge(t, "governor.probe.errors"), int64(3))
		l, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)
		l.Release(nil)
		require.Equal(t, 1, g.logs.FilterMessage("The free space of a disk cannot be read; it counts as it was").Len())
	})
}

func TestWhatTheKernelWillNotTellIsCountedAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, nil)
		g.kernel.usage.Store(&cgroupmem.Sample{
			Unreclaimable: cgroupmem.Unknown, MachineTotal: cgroupmem.Unknown,
			Failures: []cgroupmem.Failure{{Probe: cgroupmem.ProbeUsage, Err: context.DeadlineExceeded}},
		})
		elapse(time.Second)
		require.GreaterOrEqual(t, g.gauge(t, "governor.probe.errors"), int64(9))
		require.Equal(t, 1, g.logs.FilterField(zap.String("probe", "memory_usage")).Len())
	})
}

func TestACheckRefusesByStateAlone(t *testing.T) {
	one := int64(1)
	g := shared(t, func(c *Config) {
		c.Tenants.Allow = []string{"a", "broken", "full"}
		c.Tenants.Overrides = map[string]tenant.Override{"full": {MaxConcurrent: &one}}
	})
	ask := func(name string) error { return g.Check(from(t.Context(), "x-tenant", name), traces(0, 0)) }
	require.NoError(t, ask("a"))
	require.NoError(t, g.Check(t.Context(), traces(0, 0)), "whose it is may show later")
	requireReason(t, admission.TenantUnknown, ask("stranger"))

	full, err := admit(t, g, "full", mib, 1)
	require.NoError(t, err)
	requireReason(t, admission.TenantConcurrency, ask("full"))
	full.Release(nil)
	require.NoError(t, ask("full"))

	for range 8 {
		require.Error(t, second(admit(t, g, "broken", 200*mib, 1)))
	}
	requireReason(t, admission.TenantBreaker, ask("broken"))
	require.Zero(t, g.gauge(t, "governor.memory.usage"))
}

func TestRefusalsForMemoryHaveGarbageCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := queued(t)
		lease, err := admit(t, g, "a", 30*mib, 1)
		require.NoError(t, err)
		defer lease.ReleaseLater(nil)()
		elapse(3 * time.Second)
		requireReason(t, admission.TenantMemory, second(admit(t, g, "a", 20*mib, 1)))
		synctest.Wait()
		require.EqualValues(t, 1, g.gauge(t, "governor.gc.forced"))
		requireReason(t, admission.TenantMemory, second(admit(t, g, "a", 20*mib, 1)))
		synctest.Wait()
		require.EqualValues(t, 1, g.gauge(t, "governor.gc.forced"), "one at a time")
	})
}

func TestABatchIsEasyWhereThereIsRoomForManyAndNothingCountsItsItems(t *testing.T) {
	g := shared(t, func(c *Config) {
		c.Tenants.Overrides = map[string]tenant.Override{
			"counted": {MaxBatchItems: new(int64(10))},
			"rated":   {Rate: tenant.RateOverride{Items: new(tenant.PerSecond(10))}},
			"small":   {MaxBatchMemory: new(int64(1000))},
		}
	})
	easy := func(name string) int64 { return g.ease(from(t.Context(), "x-tenant", name)).Worst }
	require.EqualValues(t, mib, easy("a"))
	require.EqualValues(t, mib, g.ease(t.Context()).Worst)
	require.Zero(t, easy("counted"))
	require.Zero(t, easy("rated"))
	require.EqualValues(t, 1000, easy("small"))
	lease, err := admit(t, g, "a", 32*mib, 1)
	require.NoError(t, err)
	defer lease.Release(nil)
	require.EqualValues(t, mib/2, easy("a"))
}
