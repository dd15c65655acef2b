// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
)

// defaultTenant is whose batch it is while nobody is told apart.
const defaultTenant = "default"

// lease is an admitted batch, or the part that a further user has in one.
type lease struct {
	pool.Lease
	ceilings *ceilings
	signal   string
	memory   int64
	start    time.Time // when it was asked for
	waited   time.Duration
	part     bool
}

var _ admission.Lease = (*lease)(nil)

// reasons are what the pool's outcomes are to the outside.
var reasons = [...]admission.Reason{
	pool.TooLarge:  admission.MemoryLimit,
	pool.LineFull:  admission.QueueFull,
	pool.LineHeavy: admission.QueueFull,
	pool.NoSlot:    admission.QueueTimeout,
	pool.NoBytes:   admission.MemoryContended,
	pool.Ended:     admission.Canceled,
	pool.Closed:    admission.ShuttingDown,
}

// Admit implements admission.Governor.
func (g *governor) Admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	l := &lease{ceilings: g.of(r), signal: r.Signal, memory: r.Memory, start: time.Now()}
	err := l.ask(ctx, r, func(p pool.Request) pool.Result { return g.pool.Acquire(ctx, &l.Lease, p) })
	if err != nil {
		g.telemetry.decided(ctx, outcome{r.Signal, err.Reason}, time.Since(l.start))
		return nil, err
	}
	return l, nil
}

// Settle implements admission.Lease.
func (l *lease) Settle(ctx context.Context, r admission.Request) (admission.Lease, error) {
	part := &lease{ceilings: l.ceilings.governor.of(r), signal: r.Signal, start: time.Now(), part: true}
	released := false
	err := part.ask(ctx, r, func(p pool.Request) pool.Result {
		res := l.Lease.Settle(ctx, &part.Lease, p)
		released = res.Outcome == pool.Released
		return res
	})
	if released {
		return nil, admission.ErrReleased
	}
	if err != nil {
		return nil, err
	}
	return part, nil
}

// Grow implements admission.Lease.
func (l *lease) Grow(ctx context.Context, memory int64) error {
	res := l.Lease.Grow(ctx, memory)
	if res.Outcome == pool.Granted {
		return nil
	}
	if res.Outcome == pool.Released {
		return admission.ErrReleased
	}
	if l.ceilings.governor.observing(ctx, reasons[res.Outcome]) {
		l.Owe(memory)
		return nil
	}
	return l.refuse(ctx, refusal(res))
}

// ask takes r by way of take unless a gate forbids it. In observe mode it is only counted what was
// forbidden, and r taken all the same.
func (l *lease) ask(ctx context.Context, r admission.Request, take func(pool.Request) pool.Result) *admission.Error {
	g := l.ceilings.governor
	p := pool.Request{Account: &g.tenant, Gate: l.ceilings.gate, Bytes: max(0, r.Memory), Provisional: r.Provisional}
	forbidden := l.ceilings.judge(r)
	if forbidden.Reason == "" {
		res := take(p)
		if l.waited = res.Waited; res.Outcome == pool.Granted || res.Outcome == pool.Released {
			return nil
		}
		forbidden = refusal(res)
	}
	if g.observing(ctx, forbidden.Reason) {
		p.Debt = true
		take(p)
		return nil
	}
	return l.refuse(ctx, forbidden)
}

// refusal is what a pool's answer is to the outside.
func refusal(res pool.Result) admission.Error {
	e := admission.Error{Reason: reasons[res.Outcome], Observed: res.Observed, Limit: res.Limit}
	if res.Outcome == pool.LineHeavy {
		e.Unit = "By"
	}
	return e
}

// observing reports whether a refusal is only to be counted, and counts it. A caller that went away is
// not there to be admitted.
func (g *governor) observing(ctx context.Context, reason admission.Reason) bool {
	if g.config.Mode != ModeObserve || reason == admission.Canceled {
		return false
	}
	g.telemetry.observed(ctx, reason)
	return true
}

// Refuse implements admission.Lease.
func (l *lease) Refuse(ctx context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
	return l.refuse(ctx, admission.Error{Reason: reason, Observed: observed, Limit: limit})
}

// refuse completes e by what the client needs to know, and makes it known.
func (l *lease) refuse(ctx context.Context, e admission.Error) *admission.Error {
	g := l.ceilings.governor
	e.Tenant = defaultTenant
	if e.Reason.Delayed() {
		e.RetryAfter = g.delay.next(time.Now())
	}
	if e.Reason == admission.Canceled {
		e.Cause = context.Cause(ctx)
	}
	g.refusals.add(e.Reason)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("governor.refused", trace.WithAttributes(
			attribute.String("error.type", string(e.Reason)),
			attribute.Int64("governor.observed", e.Observed),
			attribute.Int64("governor.limit", e.Limit),
		))
	}
	return &e
}

// Release implements admission.Lease. A refusal among the outcomes, of this lease or of a limiter further
// down that shares it, makes the batch's one point a refusal.
func (l *lease) Release(result error) {
	if !l.Lease.Release() || l.part {
		return
	}
	g, took := l.ceilings.governor, time.Since(l.start)
	var reason admission.Reason
	if refusal := (*admission.Error)(nil); errors.As(result, &refusal) {
		reason = refusal.Reason
	} else if t := l.ceilings.timeout(); t > 0 && took-l.waited > t {
		g.observing(context.Background(), admission.ProcessingTimeout)
	}
	ctx := context.Background()
	g.telemetry.decided(ctx, outcome{l.signal, reason}, took)
	g.telemetry.worked(ctx, l.signal, l.memory, l.waited, took-l.waited)
}
