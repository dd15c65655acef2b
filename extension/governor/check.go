// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"

	"github.com/otel-governor/otel-governor/admission"
)

// Check implements admission.Governor. In observe mode nobody is refused, and what would have been is counted
// where the batch is asked for.
func (g *governor) Check(ctx context.Context, r admission.Request) error {
	g.guard.arrived(g.clock())
	if g.config.Mode == ModeObserve {
		return nil
	}
	t, forbidden := g.tenants.Default(), g.guard.refuses(ctx)
	if g.names(ctx, r) { // also where nobody gets in: the log says whom it met, and each has delays of its own
		member, known := g.member(ctx, r.Tenant)
		defer member.Unpin()
		if t = member; forbidden == nil {
			forbidden = g.barred(member, known)
		}
	}
	if forbidden == nil {
		return nil
	}
	return g.refuseAtOnce(ctx, r.Signal, t, forbidden)
}

// names reports whether r, or the context it comes in, says whose it is.
func (g *governor) names(ctx context.Context, r admission.Request) bool {
	return r.Tenant != "" || g.identify(ctx).name != ""
}

// barred returns why no batch of t gets in now, or nil.
func (g *governor) barred(t *member, known bool) *admission.Error {
	if !known {
		return &admission.Error{Reason: admission.TenantUnknown}
	}
	if denial, ok := t.Check(g.now()); !ok {
		return denied(denial)
	}
	if most := g.limits(t).Slots; most > 0 {
		if _, used := g.pool.AccountStats(&t.Value.pool); used >= most {
			return &admission.Error{Reason: admission.TenantConcurrency, Observed: used, Limit: most}
		}
	}
	return nil
}

// refuseAtOnce makes the answer to a request that was refused before anything of it was read, and its point.
func (g *governor) refuseAtOnce(ctx context.Context, signal string, t *member, e *admission.Error) *admission.Error {
	g.telemetry.of(signal).decided(ctx, refusal{inHeader, e.Reason}, 0)
	return g.refuse(ctx, t, e)
}
