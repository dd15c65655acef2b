// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// lease is an admitted batch, or the part that a further user has in one.
type lease struct {
	pool.Lease
	ceilings *ceilings
	tenant   atomic.Pointer[member] // whose batch it is, also after it has ended
	root     *lease                 // of a part
	memory   int64                  // in all
	start    time.Duration          // when it was asked for, by the governor's clock
	waited   time.Duration
	phase    phase
	verdict  tenant.Outcome // on it, once the batch was refused or, in observe mode, would have been

	provisional atomic.Bool // its claims rest on estimates
	observed    atomic.Bool // it was counted as a batch that would have been refused
	mu          struct {
		sync.Mutex
		claims claims // those of one that has ended are no more than its end's to touch
		failed *failure
		ended  bool
	}
}

// failure is that a part of a batch was refused.
type failure struct {
	reason admission.Reason
	blamed bool // whose fault that was has been told
}

var _ admission.Lease = (*lease)(nil)

// Settle implements admission.Lease. The first of a provisional lease goes through the tenants' gates with
// the true figures, and its claims become those of the lease; any other pays for bytes alone, since
// tenants and rates have been charged for the batch already.
func (l *lease) Settle(ctx context.Context, r admission.Request) (admission.Lease, error) {
	root := l.whole()
	if root.Ended() { // so that nothing is refused in the name of a batch that was answered long ago
		return nil, admission.ErrReleased
	}
	g := l.ceilings.governor
	part := &lease{ceilings: g.of(&r), root: root, phase: inBatch, start: g.clock()}
	part.tenant.Store(root.tenant.Load())
	var claims claims
	first := root.provisional.CompareAndSwap(true, false)
	if first {
		g.claim(ctx, &r, &claims)
		part.tenant.Store(claims.owner.tenant)
		root.mu.Lock()
		if !root.mu.ended {
			if owner := &root.mu.claims.owner; owner.tenant != nil {
				owner.tenant.Value.heft.saw(total(&r).Memory, owner.wireSize)
			}
			claims.takeOver(&root.mu.claims)
		}
		root.mu.Unlock()
	}
	released := false
	fault, err := part.ask(ctx, g.at(part.start), &r, &claims, nil, func(p pool.Request) pool.Result {
		res := l.Lease.Settle(ctx, &part.Lease, p)
		released = res.Outcome == pool.Released
		return res
	})
	if first {
		root.settle(part, fault, &claims)
	}
	if released {
		return nil, admission.ErrReleased
	}
	if err != nil {
		root.fail(failure{err.Reason, first})
		return nil, err
	}
	return part, nil
}

// settle makes the claims of the first part those of l, although its user may have had no place for it; but not
// where they were refused, or l has ended meanwhile.
func (l *lease) settle(part *lease, fault *claim, claims *claims) {
	now := l.ceilings.governor.now()
	if !l.Settled() {
		claims.end(now, fault, part.verdict, true)
		l.provisional.Store(true)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ended {
		claims.end(now, nil, tenant.Undecided, true)
		return
	}
	l.mu.claims.end(now, nil, tenant.Undecided, true)
	l.mu.claims = *claims
	l.tenant.Store(claims.owner.tenant)
	l.memory, l.verdict = part.memory, part.verdict
}

// whole is the lease of the batch that l is, or is part of.
func (l *lease) whole() *lease {
	if l.root != nil {
		return l.root
	}
	return l
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
	return l.ceilings.governor.refuse(ctx, l.tenant.Load(), answer(res))
}

// Release implements admission.Lease.
func (l *lease) Release(outcome error) { l.end(outcome) }

// end gives everything back but what is left, and reports whether l had not ended before. A refusal among the
// outcomes, of this lease or of a limiter further down that shares it, makes the batch's one point a refusal.
func (l *lease) end(outcome error, left ...pool.Share) bool {
	if !l.Lease.Release(left...) {
		return false
	}
	if l.root != nil {
		if e, is := errors.AsType[*admission.Error](outcome); is {
			l.root.fail(failure{reason: e.Reason})
		}
		return true
	}
	g := l.ceilings.governor
	if len(left) == 0 {
		g.guard.books.Dropped(l.memory)
	}
	l.mu.Lock()
	l.mu.ended = true
	var failed failure
	if l.mu.failed != nil {
		failed = *l.mu.failed
	}
	l.mu.Unlock()
	now := g.clock()
	took := now - l.start
	decision := refusal{phase: l.phase}
	verdict := tenant.Fine
	if e, is := errors.AsType[*admission.Error](outcome); is {
		failed.reason = e.Reason
	}
	if outcome != nil && failed.reason != "" { // a door knows the answer only as it went out
		decision = refusal{inBatch, failed.reason}
		if verdict = tenant.Undecided; !failed.blamed {
			verdict = l.blame(failed.reason)
		}
	} else if t := l.ceilings.timeout(); t > 0 && took-l.waited > t {
		g.observing(context.Background(), l.tenant.Load(), admission.ProcessingTimeout)
	}
	if l.verdict == tenant.Breach {
		verdict = tenant.Breach
	}
	l.ceilings.finished(l.tenant.Load(), now, decision.reason)
	l.mu.claims.end(g.at(now), &l.mu.claims.owner, verdict, false)
	l.ceilings.points.decided(context.Background(), decision, took)
	l.ceilings.points.ended(context.Background(), l.memory, l.waited, took-l.waited)
	return true
}

// fail remembers that a part of the batch was refused.
func (l *lease) fail(f failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.failed = &f
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
