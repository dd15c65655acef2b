// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
	"github.com/otel-governor/otel-governor/internal/lifetime"
	"github.com/otel-governor/otel-governor/processor/limiter/internal/metadata"
)

// errTimeout is why the context of a batch ends that is worked on for too long.
var errTimeout = errors.New("the batch's processing_timeout has passed")

// limiter is one instance of the processor: one id in one pipeline.
type limiter struct {
	config    *Config
	id        component.ID
	signal    string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	outcomes  outcomes

	governor admission.Governor // from Start on
	ceilings admission.Ceilings
}

func newLimiter(set processor.Settings, config *Config, signal pipeline.Signal) (*limiter, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	l := &limiter{config: config, id: set.ID, signal: signal.String(), logger: set.Logger, telemetry: builder}
	l.outcomes = newOutcomes(l.id.String(), l.signal)
	return l, nil
}

// Start finds the governor and registers with it.
func (l *limiter) Start(_ context.Context, host component.Host) error {
	var err error
	if l.governor, err = find(host.GetExtensions(), l.config.Governor); err != nil {
		return err
	}
	var first bool
	if l.ceilings, first, err = l.governor.Register(l.limits()); err != nil || !first {
		return err
	}
	return l.observe()
}

// limits are what the configuration lowers.
func (l *limiter) limits() admission.Limits {
	c := l.config.Limits
	return admission.Limits{
		Component:         l.id.String(),
		Signal:            l.signal,
		MaxBatchMemory:    orZero(c.MaxBatchMemory),
		MaxBatchItems:     orZero(c.MaxBatchItems),
		MaxConcurrent:     orZero(c.MaxConcurrent),
		ProcessingTimeout: orZero(c.ProcessingTimeout),
		NamesTenants:      l.config.TenantAttribute != "",
	}
}

func orZero[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// find returns the governor that is wanted among the extensions, or the only one.
func find(extensions map[component.ID]component.Component, wanted *ExtensionID) (admission.Governor, error) {
	if wanted != nil {
		ext, there := extensions[wanted.ID]
		if !there {
			return nil, fmt.Errorf("'governor' names the extension %q, which is not in service::extensions", wanted)
		}
		g, is := ext.(admission.Governor)
		if !is {
			return nil, fmt.Errorf("'governor' names the extension %q, which is not a governor", wanted)
		}
		return g, nil
	}
	var found admission.Governor
	var ids []string
	for id, ext := range extensions {
		if g, is := ext.(admission.Governor); is {
			found, ids = g, append(ids, id.String())
		}
	}
	switch len(ids) {
	case 1:
		return found, nil
	case 0:
		return nil, errors.New("there is no governor: add the extension governor to extensions and to service::extensions")
	default:
		slices.Sort(ids)
		return nil, fmt.Errorf("there are several governors (%s): name one as 'governor'", strings.Join(ids, ", "))
	}
}

// Shutdown ends the telemetry. Batches at work keep their leases until they are done.
func (l *limiter) Shutdown(context.Context) error {
	l.telemetry.Shutdown()
	return nil
}

// kind is what differs between the signals.
type kind[T any] struct {
	weigh    func(T) int64 // heap
	count    func(T) int   // items
	each     func(T, footprint.Each)
	wireSize func(T) int // of the OTLP protobuf
	watch    func(T) *lifetime.Watch
}

// governed returns the consumer of one signal that passes on to next what the governor admits.
func governed[T any](l *limiter, k kind[T], next func(context.Context, T) error) func(context.Context, T) error {
	return func(ctx context.Context, data T) error {
		r := admission.Request{
			Share:    admission.Share{Memory: k.weigh(data), Items: int64(k.count(data))},
			Signal:   l.signal,
			Ceilings: l.ceilings,
		}
		items := r.Items
		if l.ceilings.CountsWireSize() {
			r.WireSize = int64(k.wireSize(data))
		}
		if l.config.TenantAttribute != "" {
			if _, named := l.governor.Identify(ctx); !named {
				r.Share, r.Others = split(r.Share, l.config.TenantAttribute, func(each footprint.Each) { k.each(data, each) })
			}
		}
		lease, err := l.admit(ctx, r)
		if err != nil {
			l.telemetry.LimiterItems.Add(ctx, items, l.outcomes.of(err, true)...)
			return err
		}
		var watch *lifetime.Watch
		if l.ceilings.Outlived() {
			watch = k.watch(data) // now, for it may be moved away by the time that it matters
		}
		err = l.work(ctx, lease, watch, func(ctx context.Context) error { return next(ctx, data) })
		l.telemetry.LimiterItems.Add(ctx, items, l.outcomes.of(err, false)...)
		return err
	}
}

// admit takes a lease, or a part of the one that the batch comes with. One that has ended belongs to data
// that was answered for long ago and lives on in a batcher or a queue.
func (l *limiter) admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	if lease := admission.LeaseFromContext(ctx); lease != nil {
		part, err := lease.Settle(ctx, r)
		if !errors.Is(err, admission.ErrReleased) {
			return part, err
		}
	}
	return l.governor.Admit(ctx, r)
}

// work calls next under the lease and releases it, whatever next does; what next keeps of the data stays on the
// books of its tenant. A panic is the answer to that one batch; the process has others to look after.
func (l *limiter) work(ctx context.Context, lease admission.Lease, watch *lifetime.Watch, next func(context.Context) error) (err error) {
	finished := false
	defer func() {
		if p := recover(); p != nil {
			l.logger.Error("Processing a batch panicked", zap.Any("panic", p), zap.Stack("stack"))
			err = lease.Refuse(ctx, admission.Panicked, 0, 0)
		} else if !finished { // the goroutine is being ended
			err = context.Canceled
		}
		watch.Then(lease.ReleaseLater(err))
	}()
	err = l.timed(admission.ContextWithLease(ctx, lease), lease, next)
	finished = true
	return err
}

// timed calls next, whose context ends when the batch has been worked on for too long. An error that
// follows from that is the timeout's. The time tells which one does: a server that was told of the deadline may answer
// before the timer of the context has fired.
func (l *limiter) timed(ctx context.Context, lease admission.Lease, next func(context.Context) error) error {
	allowed := l.ceilings.ProcessingTimeout()
	if allowed == 0 {
		return next(ctx)
	}
	began := time.Now()
	work, cancel := context.WithTimeoutCause(ctx, allowed, errTimeout)
	defer cancel()
	err := next(work)
	if worked := time.Since(began); err != nil && ctx.Err() == nil && worked >= allowed {
		return lease.Refuse(ctx, admission.ProcessingTimeout, worked.Milliseconds(), allowed.Milliseconds())
	}
	return err
}

// observe registers the gauges, for all instances with this id and signal.
func (l *limiter) observe() error {
	attrs := metric.WithAttributeSet(l.outcomes.set)
	usage := func(of func() (int64, int64)) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			value, _ := of()
			o.Observe(value, attrs)
			return nil
		}
	}
	limit := func(of func() (int64, int64)) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			_, value := of()
			o.Observe(value, attrs)
			return nil
		}
	}
	return errors.Join(
		l.telemetry.RegisterLimiterMemoryUsageCallback(usage(l.ceilings.Memory)),
		l.telemetry.RegisterLimiterMemoryLimitCallback(limit(l.ceilings.Memory)),
		l.telemetry.RegisterLimiterConcurrencyUsageCallback(usage(l.ceilings.Concurrency)),
		l.telemetry.RegisterLimiterConcurrencyLimitCallback(limit(l.ceilings.Concurrency)),
	)
}
