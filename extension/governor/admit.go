// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// reasons are what the pool's outcomes are to the outside.
var reasons = [...]admission.Reason{
	pool.TooLarge:  admission.MemoryLimit,
	pool.LineFull:  admission.QueueFull,
	pool.LineHeavy: admission.QueueFull,
	pool.QueueFull: admission.QueueFull,
	pool.OverSlots: admission.TenantConcurrency,
	pool.OverBytes: admission.TenantMemory,
	pool.NoSlot:    admission.QueueTimeout,
	pool.NoBytes:   admission.MemoryContended,
	pool.Ended:     admission.Canceled,
	pool.Closed:    admission.ShuttingDown,
}

// Admit implements admission.Governor.
func (g *governor) Admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	l := g.leases.Get().(*lease)
	l.ceilings, l.start, l.phase = g.of(&r), g.clock(), inBatch
	now := g.at(l.start)
	if r.Provisional {
		l.phase = onWire
		l.provisional.Store(true)
	}
	claims := &l.mu.claims // nobody else knows of them yet
	if r.Provisional && g.named.Load() && !g.names(ctx, r) {
		l.tenant.Store(g.tenants.Default()) // whose it is, its data will tell
	} else {
		g.claim(ctx, &r, claims)
		l.tenant.Store(claims.owner.tenant)
	}
	g.guard.arrived(l.start)
	fault, err := l.ask(ctx, now, &r, claims, g.guard.refuses(ctx), func(p pool.Request) pool.Result {
		if p.Account == nil {
			p.Account = &g.nobody
		}
		return g.pool.Acquire(ctx, &l.Lease, p)
	})
	if err != nil {
		took := g.clock() - l.start
		claims.end(now.Add(took), fault, l.verdict, true)
		l.ceilings.points.decided(ctx, refusal{l.phase, err.Reason}, took)
		*l = lease{}
		g.leases.Put(l) // nobody has seen it
		return nil, err
	}
	return l, nil
}

// ask takes r by way of take unless it is forbidden already or a gate forbids it. In observe mode it is only
// counted what was forbidden, and r taken all the same. It does not end the claims, and returns the one whose fault
// it is where r is refused.
func (l *lease) ask(
	ctx context.Context, now time.Time, r *admission.Request, claims *claims, forbidden *admission.Error,
	take func(pool.Request) pool.Result,
) (fault *claim, _ *admission.Error) {
	g := l.ceilings.governor
	all := total(r)
	l.memory = all.Memory
	p := pool.Request{Gate: l.ceilings.gate, Bytes: all.Memory, Provisional: r.Provisional, Parked: r.WireSize}
	fault = &claims.owner
	if claims.owner.tenant != nil {
		p.Account, p.Others = claims.accounts()
	}
	switch {
	case forbidden != nil:
	case claims.owner.tenant != nil:
		fault, forbidden = g.pass(claims, l.ceilings, &all, now)
	default:
		forbidden = l.ceilings.judge(&all)
	}
	if forbidden == nil {
		res := take(p)
		if l.waited = res.Waited; res.Outcome == pool.Granted || res.Outcome == pool.Released {
			return fault, nil
		}
		forbidden = answer(res)
	}
	if forbidden.Reason.Breach() {
		l.verdict = tenant.Breach
	}
	whose := cmp.Or(fault.tenant, l.tenant.Load())
	if l.observing(ctx, whose, forbidden.Reason) {
		p.Debt = true
		take(p)
		return fault, nil
	}
	return fault, g.refuse(ctx, whose, forbidden)
}

// total is what all shares of r come to.
func total(r *admission.Request) admission.Share {
	all := admission.Share{Memory: max(0, r.Memory), Items: r.Items}
	for i := range r.Others {
		all.Memory += max(0, r.Others[i].Memory)
		all.Items += r.Others[i].Items
	}
	return all
}

// answer is what a pool's answer is to the outside.
func answer(res pool.Result) *admission.Error {
	e := &admission.Error{Reason: reasons[res.Outcome], Observed: res.Observed, Limit: res.Limit}
	if res.Outcome == pool.LineHeavy {
		e.Unit = "By"
	}
	return e
}

// observing is the governor's for a batch that is asked for, which counts once: what a door would have refused would
// not have come to a limiter.
func (l *lease) observing(ctx context.Context, t *member, reason admission.Reason) bool {
	whole := l.whole()
	if whole.observed.Load() && reason != admission.Canceled {
		return true
	}
	only := l.ceilings.governor.observing(ctx, t, reason)
	if only {
		whole.observed.Store(true)
	}
	return only
}

// observing reports whether a refusal of t's batch is only to be counted, and counts it. A caller that went
// away is not there to be admitted.
func (g *governor) observing(ctx context.Context, t *member, reason admission.Reason) bool {
	if g.config.Mode != ModeObserve || reason == admission.Canceled {
		return false
	}
	t.Value.refusals.add(reason)
	g.telemetry.observed(ctx, reason)
	return true
}

// Refuse implements admission.Lease.
func (l *lease) Refuse(ctx context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
	return l.ceilings.governor.refuse(ctx, l.tenant.Load(), &admission.Error{Reason: reason, Observed: observed, Limit: limit})
}

// refuse completes e by what the client needs to know, and makes it known.
func (g *governor) refuse(ctx context.Context, t *member, e *admission.Error) *admission.Error {
	now := g.now()
	e.Tenant = t.Shown()
	switch {
	case e.RetryAfter > 0:
		e.RetryAfter = computed(e.RetryAfter)
	case e.Reason.Delayed():
		e.RetryAfter = t.Value.delay.next(now)
	}
	g.guard.short(now, e.Reason)
	if e.Reason == admission.Canceled {
		e.Cause = context.Cause(ctx)
	}
	t.Value.refusals.add(e.Reason)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("governor.refused", trace.WithAttributes(
			attribute.String("error.type", string(e.Reason)),
			attribute.Int64("governor.observed", e.Observed),
			attribute.Int64("governor.limit", e.Limit),
		))
	}
	return e
}
