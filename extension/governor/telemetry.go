// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadata"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/pressure"
)

// telemetry turns what was decided into the metrics of metadata.yaml.
type telemetry struct {
	*metadata.TelemetryBuilder
	options sync.Map // series → []metric.RecordOption: a closed set, built once each
}

// series are the attributes of a histogram's point. Those that are empty it does not have.
type series struct {
	signal string
	phase  string
	reason admission.Reason
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	return &telemetry{TelemetryBuilder: builder}, err
}

// of returns the attributes of s.
func (t *telemetry) of(s series) []metric.RecordOption {
	if opts, ok := t.options.Load(s); ok {
		return opts.([]metric.RecordOption)
	}
	var attrs []attribute.KeyValue
	for _, a := range [...]attribute.KeyValue{
		attribute.String("otelcol.signal", s.signal),
		attribute.String("governor.phase", s.phase),
		attribute.String("error.type", string(s.reason)),
	} {
		if a.Value.AsString() != "" {
			attrs = append(attrs, a)
		}
	}
	opts, _ := t.options.LoadOrStore(s, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))})
	return opts.([]metric.RecordOption)
}

// decided records the one point that every batch is. One that was not refused has no reason.
func (t *telemetry) decided(ctx context.Context, signal string, reason admission.Reason, took time.Duration) {
	t.GovernorBatchDuration.Record(ctx, took.Seconds(), t.of(series{signal, "batch", reason})...)
}

// worked records a batch that was admitted.
func (t *telemetry) worked(ctx context.Context, signal string, memory int64, waited, worked time.Duration) {
	opts := t.of(series{signal: signal})
	t.GovernorBatchMemory.Record(ctx, memory, opts...)
	t.GovernorBatchWaitDuration.Record(ctx, waited.Seconds(), opts...)
	t.GovernorBatchProcessingDuration.Record(ctx, worked.Seconds(), opts...)
}

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
