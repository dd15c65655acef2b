// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"time"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/pressure"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// account is what the governor keeps for a tenant.
type account struct {
	pool     pool.Account
	carrier  pressure.Carrier // what its ended leases left
	heft     heft             // of its batches
	delay    delay            // of its refusals
	refusals refusals
}

type (
	registry = tenant.Registry[account]
	member   = tenant.Tenant[account]
)

// claim is what one tenant has in a batch, from the first gate to the end of the lease.
type claim struct {
	tenant   *member
	memory   int64
	items    int64
	wireSize int64
	pass     tenant.Pass // of its breaker
	known    bool        // it is one of those allowed
	passed   bool        // it has the pass
	taken    bool        // the amounts are taken
}

func newClaim(t *member, known bool, s *admission.Share) claim {
	return claim{tenant: t, known: known, memory: s.Memory, items: s.Items, wireSize: s.WireSize}
}

// amounts are what it takes of its tenant's rates.
func (c *claim) amounts() tenant.Amounts {
	return tenant.Amounts{Requests: 1, Items: c.items, Bytes: c.wireSize}
}

// claims are all that a batch has. The first is the owner's; further ones are rare.
type claims struct {
	owner  claim
	others []claim
}

// len is how many there are.
func (c *claims) len() int {
	if c.owner.tenant == nil {
		return 0
	}
	return 1 + len(c.others)
}

// at returns one of them.
func (c *claims) at(i int) *claim {
	if i == 0 {
		return &c.owner
	}
	return &c.others[i-1]
}

// accounts returns the owner's account, and what others have.
func (c *claims) accounts() (*pool.Account, []pool.Share) {
	var others []pool.Share
	for i := range c.others {
		o := &c.others[i]
		others = append(others, pool.Share{Account: &o.tenant.Value.pool, Bytes: o.memory})
	}
	return &c.owner.tenant.Value.pool, others
}

// end gives back what the claims hold, and tells the breakers what became of the batch: outcome to the one
// at fault, and nothing in particular to the others. Rates are given back where it was not admitted.
func (c *claims) end(now time.Time, at *claim, o tenant.Outcome, refund bool) {
	for i := range c.len() {
		one := c.at(i)
		if refund {
			one.refund()
		}
		if one.passed {
			verdict := o
			if one != at && o == tenant.Breach {
				verdict = tenant.Undecided
			}
			one.tenant.Report(now, one.pass, verdict)
		}
		one.tenant.Unpin()
	}
	*c = claims{}
}

func (c *claim) refund() {
	if c.taken {
		c.tenant.Refund(c.amounts())
		c.taken = false
	}
}

// takeOver gives back what estimates of the same batch took of the rates, and moves the passes of the breakers
// to those tenants that still have a part in it.
func (c *claims) takeOver(estimates *claims) {
	for i := range estimates.len() {
		old := estimates.at(i)
		old.refund()
		for j := range c.len() {
			if one := c.at(j); old.passed && one.tenant == old.tenant && one.known == old.known {
				one.pass, one.passed, old.passed = old.pass, true, false
			}
		}
	}
}

// claim pins the tenants that r is for, as c, which must be new. Several of its names may be those of one tenant.
func (g *governor) claim(ctx context.Context, r *admission.Request, c *claims) {
	owner, known := g.member(ctx, r.Tenant)
	c.owner = newClaim(owner, known, &r.Share)
	for i := range r.Others {
		s := &r.Others[i]
		t, known := g.member(ctx, s.Tenant)
		if !c.merge(t, known, s) {
			c.others = append(c.others, newClaim(t, known, s))
		}
	}
}

// merge adds a share to the claim that its tenant has already, and reports whether it has one.
func (c *claims) merge(t *member, known bool, s *admission.Share) bool {
	for i := range c.len() {
		if one := c.at(i); one.tenant == t && one.known == known {
			one.memory += s.Memory
			one.items += s.Items
			one.wireSize += s.WireSize
			t.Unpin()
			return true
		}
	}
	return false
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
func (g *governor) pass(c *claims, through *ceilings, all *admission.Share, now time.Time) (*claim, *admission.Error) {
	apart := g.identified.Load() || len(c.others) > 0 // else there is one tenant, and what holds for all holds for it
	if apart {
		for i := range c.len() {
			if e := c.at(i).admitted(now); e != nil {
				return c.at(i), e
			}
		}
	}
	if e := through.judge(all); e != nil || !apart {
		return &c.owner, e
	}
	for i := range c.len() {
		if e := c.at(i).within(now); e != nil {
			return c.at(i), e
		}
	}
	return &c.owner, nil
}

// admitted reports whether the tenant is known and its breaker lets it through.
func (c *claim) admitted(now time.Time) *admission.Error {
	if !c.known {
		return &admission.Error{Reason: admission.TenantUnknown}
	}
	if c.passed {
		return nil
	}
	pass, denial, ok := c.tenant.Allow(now)
	if !ok {
		return denied(denial)
	}
	c.pass, c.passed = pass, true
	return nil
}

// denied is what a breaker's denial is to the outside.
func denied(d tenant.Denial) *admission.Error {
	return &admission.Error{Reason: admission.TenantBreaker, Observed: d.Breaches, Limit: d.Allowed, RetryAfter: d.Remaining}
}

// within reports whether the batch is within the tenant's ceilings for one, and takes it of its rates.
func (c *claim) within(now time.Time) *admission.Error {
	ceilings := c.tenant.Ceilings()
	if most := ceilings.MaxBatchMemory; most > 0 && c.memory > most {
		return &admission.Error{Reason: admission.BatchMemory, Observed: c.memory, Limit: most}
	}
	if most := ceilings.MaxBatchItems; most > 0 && c.items > most {
		return &admission.Error{Reason: admission.BatchItems, Observed: c.items, Limit: most}
	}
	switch res := c.tenant.Take(now, c.amounts()); res.Outcome {
	case tenant.OverBurst:
		return &admission.Error{Reason: admission.RateBurst, Observed: res.Amount, Limit: res.Burst, Unit: rateUnits[res.Unit]}
	case tenant.Missing:
		return &admission.Error{
			Reason: admission.TenantRate, Observed: res.Amount, Limit: res.Burst, Unit: rateUnits[res.Unit], RetryAfter: res.Wait,
		}
	}
	c.taken = true
	return nil
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
