// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// lease is an admitted batch, or the part that a further user has in one.
type lease struct {
	pool.Lease
	ceilings *ceilings
	claims   claims
	tenant   atomic.Pointer[member] // whose batch it is, also after it has ended
	root     *lease                 // of a part
	signal   string
	memory   int64     // in all
	start    time.Time // when it was asked for
	waited   time.Duration

	provisional atomic.Bool    // its claims rest on estimates
	fault       *claim         // whose fault it was
	verdict     tenant.Outcome // on it, once the batch was refused or, in observe mode, would have been
}

var _ admission.Lease = (*lease)(nil)

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
	l.ceilings, l.signal, l.start = g.of(r), r.Signal, g.now()
	l.provisional.Store(r.Provisional)
	l.claims = g.claim(ctx, &r)
	l.tenant.Store(l.claims.owner.tenant)
	err := l.ask(ctx, &r, func(p pool.Request) pool.Result { return g.pool.Acquire(ctx, &l.Lease, p) })
	if err != nil {
		l.claims.end(g.now(), l.fault, l.verdict, true)
		g.telemetry.decided(ctx, r.Signal, err.Reason, g.now().Sub(l.start))
		*l = lease{}
		g.leases.Put(l) // nobody has seen it
		return nil, err
	}
	return l, nil
}

// Settle implements admission.Lease. The first of a provisional lease goes through the tenants' gates with
// the true figures, and its claims become those of the lease; any other pays for bytes alone, since
// tenants and rates have been charged for the batch already.
func (l *lease) Settle(ctx context.Context, r admission.Request) (admission.Lease, error) {
	root := l
	if l.root != nil {
		root = l.root
	}
	if root.Ended() { // so that nothing is refused in the name of a batch that was answered long ago
		return nil, admission.ErrReleased
	}
	g := l.ceilings.governor
	part := &lease{ceilings: g.of(r), root: root, signal: r.Signal, start: g.now()}
	part.tenant.Store(root.tenant.Load())
	first := root.provisional.CompareAndSwap(true, false)
	if first {
		part.claims = g.claim(ctx, &r)
		part.tenant.Store(part.claims.owner.tenant)
	}
	released := false
	err := part.ask(ctx, &r, func(p pool.Request) pool.Result {
		res := l.Lease.Settle(ctx, &part.Lease, p)
		released = res.Outcome == pool.Released
		return res
	})
	switch now := g.now(); {
	case first && root.Settled(): // although its user may have had no place for it
		root.claims.end(now, nil, tenant.Undecided, true)
		root.claims, part.claims = part.claims, claims{}
		root.tenant.Store(part.tenant.Load())
		root.memory, root.verdict = part.memory, part.verdict
	case first:
		part.claims.end(now, part.fault, part.verdict, true)
		root.provisional.Store(true)
	}
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
	if l.ceilings.governor.observing(ctx, l.tenant.Load(), reasons[res.Outcome]) {
		l.Owe(memory)
		return nil
	}
	return l.refuse(ctx, l.tenant.Load(), refusal(res))
}

// ask takes r by way of take unless a gate forbids it. In observe mode it is only counted what was
// forbidden, and r taken all the same. It does not end l's claims.
func (l *lease) ask(ctx context.Context, r *admission.Request, take func(pool.Request) pool.Result) *admission.Error {
	g := l.ceilings.governor
	all := admission.Share{Memory: max(0, r.Memory), Items: r.Items}
	for _, s := range r.Others {
		all.Memory += max(0, s.Memory)
		all.Items += s.Items
	}
	l.memory = all.Memory
	p := pool.Request{Gate: l.ceilings.gate, Bytes: all.Memory, Provisional: r.Provisional}
	var forbidden admission.Error
	l.fault = &l.claims.owner
	if l.claims.owner.tenant != nil {
		p.Account, p.Others = l.claims.accounts()
		l.fault, forbidden = g.pass(&l.claims, l.ceilings, all, l.start)
	} else {
		forbidden = l.ceilings.judge(all)
	}
	if forbidden.Reason == "" {
		res := take(p)
		if l.waited = res.Waited; res.Outcome == pool.Granted || res.Outcome == pool.Released {
			return nil
		}
		forbidden = refusal(res)
	}
	if forbidden.Reason.Breach() {
		l.verdict = tenant.Breach
	}
	whose := cmp.Or(l.fault.tenant, l.tenant.Load())
	if g.observing(ctx, whose, forbidden.Reason) {
		p.Debt = true
		take(p)
		return nil
	}
	return l.refuse(ctx, whose, forbidden)
}

// refusal is what a pool's answer is to the outside.
func refusal(res pool.Result) admission.Error {
	e := admission.Error{Reason: reasons[res.Outcome], Observed: res.Observed, Limit: res.Limit}
	if res.Outcome == pool.LineHeavy {
		e.Unit = "By"
	}
	return e
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
	return l.refuse(ctx, l.tenant.Load(), admission.Error{Reason: reason, Observed: observed, Limit: limit})
}

// refuse completes e by what the client needs to know, and makes it known.
func (l *lease) refuse(ctx context.Context, t *member, e admission.Error) *admission.Error {
	e.Tenant = tenant.Show(t.Name())
	switch {
	case e.RetryAfter > 0:
		e.RetryAfter = computed(e.RetryAfter)
	case e.Reason.Delayed():
		e.RetryAfter = t.Value.delay.next(l.ceilings.governor.now())
	}
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
	return &e
}

// Release implements admission.Lease. A refusal among the outcomes, of this lease or of a limiter further
// down that shares it, makes the batch's one point a refusal.
func (l *lease) Release(result error) {
	if !l.Lease.Release() || l.root != nil {
		return
	}
	g := l.ceilings.governor
	now := g.now()
	took := now.Sub(l.start)
	var reason admission.Reason
	verdict := tenant.Fine
	if refusal, is := errors.AsType[*admission.Error](result); is {
		reason, verdict = refusal.Reason, l.blame(refusal.Reason)
	} else if t := l.ceilings.timeout(); t > 0 && took-l.waited > t {
		g.observing(context.Background(), l.tenant.Load(), admission.ProcessingTimeout)
	}
	if l.verdict == tenant.Breach {
		verdict = tenant.Breach
	}
	l.ceilings.finished(l.tenant.Load(), now, reason)
	l.claims.end(now, &l.claims.owner, verdict, false)
	ctx := context.Background()
	g.telemetry.decided(ctx, l.signal, reason, took)
	g.telemetry.worked(ctx, l.signal, l.memory, l.waited, took-l.waited)
}

// ReleaseLater implements admission.Lease.
func (l *lease) ReleaseLater(outcome error) (gone func()) {
	l.Release(outcome)
	return func() {}
}

// blame is what a refusal of a batch that was admitted is to its tenant's breaker. A timeout is a breach only
// if another tenant's batch came through the same way meanwhile: what is stuck is nobody's breach.
func (l *lease) blame(reason admission.Reason) tenant.Outcome {
	switch {
	case reason.Breach(), reason == admission.ProcessingTimeout && l.ceilings.passedBy(l.tenant.Load(), l.start):
		return tenant.Breach
	default:
		return tenant.Undecided
	}
}
