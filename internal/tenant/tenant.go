// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// terms are the ceilings of one or many tenants and what follows from them. They never change.
type terms struct {
	Ceilings
	rates      *rates
	configured bool // they come from an override
}

func newTerms(c Ceilings, configured bool) *terms {
	return &terms{Ceilings: c, rates: newRates(c.Rate), configured: configured}
}

// inUse is when a tenant became idle that has not.
const inUse = math.MinInt64

// Tenant is one tenant. All methods are safe for concurrent use; those that charge or shut out want a
// tenant that is pinned. Times given to them are readings of time.Now.
type Tenant[A any] struct {
	// Value is the caller's. The registry does not touch it.
	Value A

	name     string
	shown    string
	trusted  bool
	reserved bool // one of the registry's own, which is never forgotten
	epoch    time.Time
	terms    atomic.Pointer[terms]
	pins     atomic.Int64
	idle     atomic.Int64 // since when a sweep has found it unused, or inUse
	place    int          // in its shard's ring, under the shard's lock

	mu      sync.Mutex
	buckets buckets
	breaker breaker
}

// Name returns the tenant's name. It may contain anything; see [Show].
func (t *Tenant[A]) Name() string { return t.name }

// Shown is the name as [Show] writes it.
func (t *Tenant[A]) Shown() string { return t.shown }

// Ceilings returns what the tenant may take now. The caller must not change them.
func (t *Tenant[A]) Ceilings() *Ceilings { return &t.terms.Load().Ceilings }

// Configured reports whether the tenant has an override.
func (t *Tenant[A]) Configured() bool { return t.terms.Load().configured }

// Untrusted reports whether the name is nobody's word but the client's: it came from an untrusted source
// and has no override. [OverflowName] is untrusted, [DefaultName] is not, since nobody invented it.
func (t *Tenant[A]) Untrusted() bool { return !t.trusted && !t.terms.Load().configured }

// Pin keeps the tenant from being forgotten until a further Unpin. The caller must have pinned it already.
func (t *Tenant[A]) Pin() {
	if !t.reserved { // these two would be the most contended of all
		t.pins.Add(1)
	}
}

// Unpin ends one use of the tenant. Nothing may be charged to it through this pin afterwards.
func (t *Tenant[A]) Unpin() {
	if t.reserved {
		return
	}
	t.touch()
	if t.pins.Add(-1) < 0 {
		panic("tenant: Unpin of a tenant that is not pinned")
	}
}

// touch must be called while the tenant is pinned.
func (t *Tenant[A]) touch() {
	if t.idle.Load() != inUse { // most often it is, and a store would take the cache line from others
		t.idle.Store(inUse)
	}
}

func (t *Tenant[A]) since(now time.Time) int64 { return int64(now.Sub(t.epoch)) }

// Take takes a of the tenant's rates, all or nothing, and returns at once.
func (t *Tenant[A]) Take(now time.Time, a Amounts) RateResult {
	return t.Settle(now, Amounts{}, a)
}

// Settle makes what was taken as before what is taken as after: it gives back what is too much and takes
// what is missing, all or nothing. If it fails, before is still taken.
func (t *Tenant[A]) Settle(now time.Time, before, after Amounts) RateResult {
	if len(t.terms.Load().rates.limited) == 0 {
		return RateResult{}
	}
	at := t.since(now)
	t.mu.Lock()
	res := t.buckets.move(at, &before, &after) // nothing in it can panic: no defer
	t.mu.Unlock()
	return res
}

// Refund gives back what was taken as a. The buckets are then as if it had not been taken, and never more
// than full, whatever became of the ceilings meanwhile.
func (t *Tenant[A]) Refund(a Amounts) {
	if len(t.terms.Load().rates.limited) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buckets.give(t.buckets.rates.limited, &Amounts{}, &a)
}

// Allow asks the breaker whether a batch may go on to the other gates. If so its outcome must be reported
// with the pass; a pass may be that of the one probe of a breaker that was open. If not, d says why.
func (t *Tenant[A]) Allow(now time.Time) (p Pass, d Denial, ok bool) {
	if p, ok = t.breaker.closed(); ok {
		return p, Denial{}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.breaker.allow(t.since(now), true)
}

// Check is like Allow for whoever has nothing to report: it answers by the state and takes no probe.
func (t *Tenant[A]) Check(now time.Time) (d Denial, ok bool) {
	if _, ok = t.breaker.closed(); ok {
		return Denial{}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, d, ok = t.breaker.allow(t.since(now), false)
	return d, ok
}

// Report tells the breaker what became of the batch that was allowed by p; once for each pass. It returns
// whether that opened the breaker.
func (t *Tenant[A]) Report(now time.Time, p Pass, o Outcome) (opened bool) {
	c := &t.terms.Load().Breaker
	if t.reserved || o == Undecided && p.probe == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.breaker.report(c, t.since(now), p, o)
}

// Open reports whether the breaker is anything but closed.
func (t *Tenant[A]) Open() bool {
	_, closed := t.breaker.closed()
	return !closed
}

// adopt puts the tenant under other terms. What it has taken stays taken.
func (t *Tenant[A]) adopt(to *terms, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buckets.refit(to.rates, now)
	t.breaker.refit(&to.Breaker)
	t.terms.Store(to)
}

// forgettable reports whether a tenant that came back after being forgotten would have gained nothing.
func (t *Tenant[A]) forgettable(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buckets.full(now) && t.breaker.clean(&t.terms.Load().Breaker, now)
}
