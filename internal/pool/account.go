// SPDX-License-Identifier: Apache-2.0

package pool

import "math"

// Limits are an account's ceilings and its weight. A zero field is no ceiling, and a weight of 1.
type Limits struct {
	Weight   float64 // of its share of the pool and of the line
	Fraction float64 // of the capacity, which it may hold
	Slots    int64   // leases at once, those that it waits for included
	Queued   int64   // waiters in line; None may not wait
	// Stranger marks an account whose name nobody vouches for. All of them together have the share of one
	// account with weight 1, so that nobody gains by inventing names.
	Stranger bool
}

// None is a ceiling that lets nobody pass, where 0 is no ceiling.
const None = -1

// Account is what one tenant holds. The zero value holds nothing and has no ceilings; it belongs to the
// pool that it is first used with, whose lock guards it.
type Account struct {
	limits Limits
	party
	active bool
	queues []*queue      // where it waits, one for each line it ever waited in
	claim  node[Account] // its place by what it holds and waits for, while it waits
}

// party is what a share is measured for: an account, or all strangers together.
type party struct {
	held, used int64 // bytes and slots
	carried    int64 // bytes that ended leases left
	waiting    int64 // waiters in line
	wanted     int64 // bytes that are waited for
}

// NewAccount returns an account with these limits.
func NewAccount(l Limits) *Account { return &Account{limits: l} }

func (a *Account) weight() float64 {
	if a.limits.Weight == 0 || a.limits.Stranger {
		return 1
	}
	return a.limits.Weight
}

// SetLimits changes the limits of a. What it holds or waits for stays.
func (p *Pool) SetLimits(a *Account, l Limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// It leaves as what it was and comes back as what it is.
	was := a.party
	p.countLocked(a, was.negated())
	p.unplaceLocked(a)
	a.limits = l
	p.countLocked(a, was)
	p.serveLocked()
}

// countLocked adds d to what a holds and waits for, and moves it to the place in line that it has with it.
func (p *Pool) countLocked(a *Account, d party) {
	a.add(d)
	if a.limits.Stranger {
		p.mu.strangers.add(d)
	}
	if a.active != (a.held > 0 || a.used > 0 || a.carried > 0 || a.waiting > 0) {
		p.toggleLocked(a)
	}
	if a.waiting > 0 || a.claim.on() {
		p.placeLocked(a)
	}
}

// taken is what t has of the pool's bytes.
func (t *party) taken() int64 { return t.held + t.carried }

func (t *party) negated() party {
	return party{-t.held, -t.used, -t.carried, -t.waiting, -t.wanted}
}

func (t *party) add(d party) {
	t.held += d.held
	t.used += d.used
	t.carried += d.carried
	t.waiting += d.waiting
	t.wanted += d.wanted
}

// toggleLocked makes a one of those that share the pool, or one of them no longer.
func (p *Pool) toggleLocked(a *Account) {
	a.active = !a.active
	n, alone := int64(1), p.mu.members == 0
	if !a.active {
		n, alone = -1, p.mu.members == 1
	}
	if a.limits.Stranger {
		if p.mu.members += n; !alone {
			return // one party, however many they are
		}
	}
	p.mu.weights += float64(n) * a.weight()
	if p.mu.parties += n; p.mu.parties == 0 {
		p.mu.weights = 0 // no dust of sums and differences
	}
}

// Carry adds bytes to what the ended leases of a left alive, or takes them off where they are negative. They
// count like those that a holds, for its ceilings, its share and the room that is left.
func (p *Pool) Carry(a *Account, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carryLocked(a, bytes)
	p.serveLocked()
}

// holdLocked counts all that l holds at its accounts, or no longer by sign -1: of each other account its
// share, and of its owner the slot and the rest.
func (p *Pool) holdLocked(l *Lease, sign int64) {
	own := l.bytes
	for _, s := range l.others {
		p.countLocked(s.Account, party{held: sign * s.Bytes})
		own -= s.Bytes
	}
	p.countLocked(l.account, party{held: sign * own, used: sign * int64(l.slots)})
}

// wantLocked counts all that w waits for alike.
func (p *Pool) wantLocked(w *waiter, sign int64) {
	own := w.bytes
	for _, s := range w.others {
		p.countLocked(s.Account, party{wanted: sign * s.Bytes})
		own -= s.Bytes
	}
	p.countLocked(w.account, party{waiting: sign * w.slots, wanted: sign * own})
}

// overLocked returns which ceiling of a this much more would break, or Granted. What a waits for counts as
// if it had it, so that nobody who was let into the line meets a ceiling at its end.
func (p *Pool) overLocked(a *Account, slots, bytes int64) Result {
	if most := a.limits.Slots; most > 0 && slots > 0 && a.used+a.waiting >= most {
		return Result{Outcome: OverSlots, Observed: a.used + a.waiting, Limit: most}
	}
	if bytes == 0 {
		return Result{}
	}
	most := p.mostLocked(a)
	if f := a.limits.Fraction; f > 0 && f < 1 {
		if best := int64(f * float64(p.mu.best)); bytes > best {
			return Result{Outcome: TooLarge, Observed: bytes, Limit: best}
		}
		most = min(most, int64(f*float64(p.mu.capacity)))
	}
	if most == math.MaxInt64 {
		return Result{}
	}
	if taken := a.taken() + a.wanted; bytes > most-taken {
		return Result{Outcome: OverBytes, Observed: taken + bytes, Limit: most}
	}
	return Result{}
}

// mostLocked returns the bytes that a may have although others want some too. What it holds comes back
// soon, so all that is free is its to take, unless the pool is squeezed. What it carries may stay for long:
// no backlog grows beyond its owner's fair share when less than three times as much is left that nobody carries, so
// that the first to come takes a quarter and many others find their shares of the rest.
func (p *Pool) mostLocked(a *Account) int64 {
	if !p.mu.squeezed && 3*a.carried <= p.mu.capacity-p.mu.carried-p.mu.owed || p.aloneLocked(a) {
		return math.MaxInt64
	}
	share, _ := p.shareLocked(a)
	return int64(share)
}

// ceilingsLocked returns which ceiling of the accounts in r would be broken by it, or Granted, but for those
// accounts that have a part in l already.
func (p *Pool) ceilingsLocked(r *Request, l *Lease) Result {
	own := r.Bytes
	for _, s := range r.Others {
		own -= s.Bytes
		if l != nil && l.has(s.Account) {
			continue
		}
		if res := p.overLocked(s.Account, 0, s.Bytes); res.Outcome != Granted {
			return res
		}
	}
	if l != nil && l.has(r.Account) {
		return Result{}
	}
	return p.overLocked(r.Account, 1, own)
}
