// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/door"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/pressure"
	"github.com/otel-governor/otel-governor/internal/strict"
)

// observed counts a batch that was admitted although it broke a limit.
func (t *telemetry) observed(ctx context.Context, reason admission.Reason) {
	t.GovernorObservedRefusals.Add(ctx, 1, metric.WithAttributes(attribute.String("error.type", string(reason))))
}

// unreadable counts a reading that failed.
func (t *telemetry) unreadable(ctx context.Context, probe string) {
	t.GovernorProbeErrors.Add(ctx, 1, metric.WithAttributes(attribute.String("governor.probe", probe)))
}

// observe registers the gauges over g.
func (t *telemetry) observe(g *governor) error {
	stat := func(value func(pool.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(g.pool.Stats()))
			return nil
		}
	}
	size := func() sizing {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.mu.sizing
	}
	return errors.Join(
		t.observeTenants(g),
		t.observePressure(g),
		t.observeDoor(g),
		t.RegisterGovernorMemoryUsageCallback(stat(func(s pool.Stats) int64 { return s.Held })),
		t.RegisterGovernorMemoryLimitCallback(stat(func(s pool.Stats) int64 { return s.Capacity })),
		t.RegisterGovernorConcurrencyUsageCallback(stat(func(s pool.Stats) int64 { return s.Used })),
		t.RegisterGovernorConcurrencyLimitCallback(stat(func(s pool.Stats) int64 { return s.Slots })),
		t.RegisterGovernorQueueUsageCallback(stat(func(s pool.Stats) int64 { return s.Queued })),
		t.RegisterGovernorQueueLimitCallback(stat(func(s pool.Stats) int64 { return s.MaxQueued })),
		t.RegisterGovernorMemoryDesiredLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(size().pool)
			return nil
		}),
		t.RegisterGovernorMemoryBudgetCallback(func(_ context.Context, o metric.Int64Observer) error {
			if budget := size().budget; budget != pressure.Unbounded {
				o.Observe(budget)
			}
			return nil
		}),
	)
}

// observePressure registers the gauges over what no lease covers.
func (t *telemetry) observePressure(g *governor) error {
	books := func(value func(pressure.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(g.guard.books.Stats()))
			return nil
		}
	}
	disk := func(value func(pressure.DiskState) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, w := range g.disks.states() {
				if w.read {
					o.Observe(value(w.state), metric.WithAttributes(attribute.String("file.path", w.path)))
				}
			}
			return nil
		}
	}
	return errors.Join(
		t.RegisterGovernorMemoryCarriedCallback(books(func(s pressure.Stats) int64 { return s.Carried })),
		t.RegisterGovernorMemoryUnownedCallback(books(func(s pressure.Stats) int64 { return s.Unowned })),
		t.RegisterGovernorMemorySurvivalCallback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(g.guard.books.Stats().Survival)
			return nil
		}),
		t.RegisterGovernorPressureLevelCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(g.guard.levels.Level()))
			return nil
		}),
		t.RegisterGovernorDiskFreeCallback(disk(func(s pressure.DiskState) int64 { return s.Free })),
		t.RegisterGovernorDiskLimitCallback(disk(func(s pressure.DiskState) int64 { return s.Reserve })),
		t.RegisterGovernorDiskLowCallback(disk(func(s pressure.DiskState) int64 {
			if s.Low {
				return 1
			}
			return 0
		})),
	)
}

// observeDoor registers the gauges over requests that are not decoded yet.
func (t *telemetry) observeDoor(g *governor) error {
	gauge := func(value func(door.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(g.door.Stats()))
			return nil
		}
	}
	err := errors.Join(
		t.RegisterGovernorWireUsageCallback(gauge(func(s door.Stats) int64 { return s.Wire })),
		t.RegisterGovernorWireLimitCallback(gauge(func(s door.Stats) int64 { return s.WireLimit })),
		t.RegisterGovernorConnectionUsageCallback(gauge(func(s door.Stats) int64 { return s.Connections })),
	)
	if g.config.Door.MaxConnections != strict.Unlimited {
		most := gauge(func(s door.Stats) int64 { return s.MaxConnections })
		err = errors.Join(err, t.RegisterGovernorConnectionLimitCallback(most))
	}
	return err
}

// observeTenants registers the gauges over the tenants. Those by name are bounded, and off by default.
func (t *telemetry) observeTenants(g *governor) error {
	gauge := func(value func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value())
			return nil
		}
	}
	err := errors.Join(
		t.RegisterGovernorTenantCountCallback(gauge(g.tenants.Len)),
		t.RegisterGovernorTenantLimitCallback(gauge(func() int64 { return g.config.Tenants.MaxTracked })),
		t.RegisterGovernorTenantBreakersOpenCallback(gauge(func() (open int64) {
			for m := range g.tenants.All() {
				if m.Open() {
					open++
				}
			}
			return open
		})),
	)
	if f := g.overrides; f != nil {
		err = errors.Join(err, t.RegisterGovernorOverridesValidCallback(gauge(func() int64 {
			if f.Valid() {
				return 1
			}
			return 0
		})))
	}
	counts := func(*member) bool { return true }
	switch g.config.Telemetry.Tenants {
	case TenantsNone:
		return err
	case TenantsConfigured:
		counts = (*member).Configured
	}
	each := func(value func(usage) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, u := range g.usages(int(g.config.Telemetry.Top), counts) {
				o.Observe(value(u), metric.WithAttributes(attribute.String("governor.tenant", u.name)))
			}
			return nil
		}
	}
	return errors.Join(err,
		t.RegisterGovernorTenantMemoryUsageCallback(each(func(u usage) int64 { return u.bytes })),
		t.RegisterGovernorTenantMemoryLimitCallback(each(func(u usage) int64 { return u.maxBytes })),
		t.RegisterGovernorTenantConcurrencyUsageCallback(each(func(u usage) int64 { return u.batches })),
		t.RegisterGovernorTenantConcurrencyLimitCallback(each(func(u usage) int64 { return u.maxBatches })),
	)
}
