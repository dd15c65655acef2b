// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"time"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// account is what the governor keeps for a tenant.
type account struct {
	pool     pool.Account
	delay    delay // of its refusals
	refusals refusals
}

type (
	registry = tenant.Registry[account]
	member   = tenant.Tenant[account]
)

// claim is what one tenant has in a batch, from the first gate to the end of the lease.
type claim struct {
	tenant *member
	known  bool           // it is one of those allowed
	pass   tenant.Pass    // of its breaker
	taken  tenant.Amounts // of its rates
	share  admission.Share
}

// claims are all that a batch has. The first is the owner's; further ones are rare.
type claims struct {
	owner  claim
	others []claim
}

// all returns them.
func (c *claims) all(yield func(*claim) bool) {
	if c.owner.tenant == nil || !yield(&c.owner) {
		return
	}
	for i := range c.others {
		if !yield(&c.others[i]) {
			return
		}
	}
}

// accounts returns the owner's account, and what others have.
func (c *claims) accounts() (*pool.Account, []pool.Share) {
	var others []pool.Share
	for i := range c.others {
		o := &c.others[i]
		others = append(others, pool.Share{Account: &o.tenant.Value.pool, Bytes: o.share.Memory})
	}
	return &c.owner.tenant.Value.pool, others
}

// end gives back what the claims hold, and tells the breakers what became of the batch: outcome to the one
// at fault, and nothing in particular to the others. Rates are given back where it was not admitted.
func (c *claims) end(now time.Time, at *claim, o tenant.Outcome, refund bool) {
	for one := range c.all {
		if refund {
			one.tenant.Refund(one.taken)
		}
		verdict := o
		if one != at && o == tenant.Breach {
			verdict = tenant.Undecided
		}
		one.tenant.Report(now, one.pass, verdict)
		one.tenant.Unpin()
	}
	*c = claims{}
}

// claim pins the tenants that r is for. Several of its names may be those of one tenant.
func (g *governor) claim(ctx context.Context, r *admission.Request) claims {
	owner, known := g.member(ctx, r.Tenant)
	c := claims{owner: claim{tenant: owner, known: known, share: r.Share}}
	for _, s := range r.Others {
		t, known := g.member(ctx, s.Tenant)
		merged := false
		for one := range c.all {
			if merged = one.tenant == t && one.known == known; merged {
				one.share.Memory += s.Memory
				one.share.WireSize += s.WireSize
				one.share.Items += s.Items
				t.Unpin()
				break
			}
		}
		if !merged {
			c.others = append(c.others, claim{tenant: t, known: known, share: s})
		}
	}
	return c
}

// member pins the tenant of this name, or the one that ctx speaks for. One that is not known to be allowed
// takes no place among the tenants.
func (g *governor) member(ctx context.Context, name string) (t *member, known bool) {
	id := identity{}
	if name != "" { // what a client says, as it says it
		id.name, _ = tenant.Identity(name)
	} else if id = g.identify(ctx); id.name == "" {
		id.name = tenant.DefaultName
	}
	if len(g.allowed) > 0 && !g.allowed[id.name] {
		return g.tenants.Overflow(), false
	}
	return g.tenants.Get(id.name, id.trusted), true
}

// pass takes all claims through the gates that are their tenants' alone, and the whole batch past the ceilings
// of whom it comes through. It returns the claim that was refused and why.
func (g *governor) pass(c *claims, through *ceilings, all admission.Share, now time.Time) (*claim, admission.Error) {
	apart := g.identified.Load() || len(c.others) > 0 // else there is one tenant, and what holds for all holds for it
	if apart {
		for one := range c.all {
			if e := one.admitted(now); e.Reason != "" {
				return one, e
			}
		}
	}
	if e := through.judge(all); e.Reason != "" || !apart {
		return &c.owner, e
	}
	for one := range c.all {
		if e := one.within(now); e.Reason != "" {
			return one, e
		}
	}
	return &c.owner, admission.Error{}
}

// admitted reports whether the tenant is known and its breaker lets it through.
func (c *claim) admitted(now time.Time) admission.Error {
	if !c.known {
		return admission.Error{Reason: admission.TenantUnknown}
	}
	pass, denial, ok := c.tenant.Allow(now)
	if !ok {
		return admission.Error{
			Reason: admission.TenantBreaker, Observed: denial.Breaches, Limit: denial.Allowed, RetryAfter: denial.Remaining,
		}
	}
	c.pass = pass
	return admission.Error{}
}

// within reports whether the batch is within the tenant's ceilings for one, and takes it of its rates.
func (c *claim) within(now time.Time) admission.Error {
	s := c.share
	ceilings := c.tenant.Ceilings()
	if most := ceilings.MaxBatchMemory; most > 0 && s.Memory > most {
		return admission.Error{Reason: admission.BatchMemory, Observed: s.Memory, Limit: most}
	}
	if most := ceilings.MaxBatchItems; most > 0 && s.Items > most {
		return admission.Error{Reason: admission.BatchItems, Observed: s.Items, Limit: most}
	}
	amounts := tenant.Amounts{Requests: 1, Items: s.Items, Bytes: s.WireSize}
	switch res := c.tenant.Take(now, amounts); res.Outcome {
	case tenant.OverBurst:
		return admission.Error{Reason: admission.RateBurst, Observed: res.Amount, Limit: res.Burst, Unit: rateUnits[res.Unit]}
	case tenant.Missing:
		return admission.Error{
			Reason: admission.TenantRate, Observed: res.Amount, Limit: res.Burst, Unit: rateUnits[res.Unit], RetryAfter: res.Wait,
		}
	}
	c.taken = amounts
	return admission.Error{}
}

// rateUnits are the units of rates in UCUM.
var rateUnits = [...]string{tenant.Requests: "{request}", tenant.Items: "{item}", tenant.Bytes: "By"}

// limits are the ceilings of a tenant as the pool takes them.
func (g *governor) limits(t *member) pool.Limits {
	if t.Name() == tenant.DefaultName && !g.identified.Load() {
		return pool.Limits{} // there are no others, and what holds for all holds for it
	}
	c := t.Ceilings()
	queued := c.MaxQueued
	if queued == 0 {
		queued = pool.None
	}
	return pool.Limits{
		Weight: c.Weight, Fraction: c.MemoryFraction, Slots: c.MaxConcurrent, Queued: queued, Stranger: t.Untrusted(),
	}
}
