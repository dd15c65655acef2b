// SPDX-License-Identifier: Apache-2.0

package tenant

import "time"

// Unit is what a rate counts.
type Unit uint8

// The units.
const (
	Requests Unit = iota
	Items
	Bytes
	units
)

// String returns the unit's name in the plural.
func (u Unit) String() string { return [...]string{"requests", "items", "bytes"}[u] }

// Amounts are how much of each unit.
type Amounts struct{ Requests, Items, Bytes int64 }

func (a *Amounts) of(u Unit) int64 {
	switch u {
	case Requests:
		return max(0, a.Requests)
	case Items:
		return max(0, a.Items)
	default:
		return max(0, a.Bytes)
	}
}

// RateOutcome is how the rates answered.
type RateOutcome uint8

// The outcomes.
const (
	Taken     RateOutcome = iota
	OverBurst             // more than a full bucket holds: it can never pass
	Missing               // it would pass later
)

// RateResult is the answer of the rates. On anything but Taken nothing was taken of any unit, and Unit is
// the one it failed for: the first that is over its burst, or the one with the longest wait.
type RateResult struct {
	Outcome RateOutcome
	Unit    Unit
	Amount  int64         // asked for
	Burst   int64         // what a full bucket holds
	Wait    time.Duration // Missing: until the tokens are there, if nobody else takes them; never less
}

// rates are the limits of a tenant's units.
type rates struct {
	of      [units]rate
	limited []Unit // those that have a limit
}

func newRates(r Rate) *rates {
	rs := &rates{of: [units]rate{newRate(r.Requests, r.Burst), newRate(r.Items, r.Burst), newRate(r.Bytes, r.Burst)}}
	for u := range units {
		if rs.of[u].perNano > 0 {
			rs.limited = append(rs.limited, u)
		}
	}
	return rs
}

// buckets are what is left of them.
type buckets struct {
	rates *rates
	of    [units]bucket
}

func newBuckets(r *rates, now int64) buckets {
	b := buckets{rates: r}
	for u := range r.of {
		b.of[u] = bucket{level: r.of[u].full, last: now}
	}
	return b
}

// move takes by how much after exceeds before and gives back by how much it falls short, or does nothing.
func (b *buckets) move(now int64, before, after *Amounts) RateResult {
	gives := false
	for i, u := range b.rates.limited {
		to := after.of(u)
		more := to - before.of(u)
		if more <= 0 {
			gives = gives || more < 0
			continue
		}
		if r := &b.rates.of[u]; to > r.burst || !b.of[u].take(r, more, now) {
			b.give(b.rates.limited[:i], before, after)
			return b.explain(now, before, after)
		}
	}
	if gives {
		b.give(b.rates.limited, after, before)
	}
	return RateResult{}
}

// give gives back by how much after exceeds before, of these units.
func (b *buckets) give(of []Unit, before, after *Amounts) {
	for _, u := range of {
		if more := after.of(u) - before.of(u); more > 0 {
			b.of[u].give(&b.rates.of[u], more)
		}
	}
}

// explain says why a move is impossible.
func (b *buckets) explain(now int64, before, after *Amounts) (res RateResult) {
	for _, u := range b.rates.limited {
		r, to := &b.rates.of[u], after.of(u)
		more := to - before.of(u)
		if more <= 0 {
			continue
		}
		if to > r.burst {
			return RateResult{Outcome: OverBurst, Unit: u, Amount: to, Burst: r.burst}
		}
		if wait := b.of[u].wait(r, more, now); wait > res.Wait {
			res = RateResult{Outcome: Missing, Unit: u, Amount: more, Burst: r.burst, Wait: wait}
		}
	}
	return res
}

// refit makes them buckets of other rates.
func (b *buckets) refit(to *rates, now int64) {
	for u := range b.of {
		b.of[u].refill(&b.rates.of[u], now)
		b.of[u].refit(&b.rates.of[u], &to.of[u])
	}
	b.rates = to
}

// full reports whether all are, so that a new tenant would have no more.
func (b *buckets) full(now int64) bool {
	for _, u := range b.rates.limited {
		r, have := &b.rates.of[u], &b.of[u]
		if have.refill(r, now); have.level.less(r.full) {
			return false
		}
	}
	return true
}
