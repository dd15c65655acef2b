// SPDX-License-Identifier: Apache-2.0

package pool

// Limits are an account's ceilings and its weight. A zero field is no ceiling, and a weight of 1.
type Limits struct {
	Weight   float64 // of its share of the pool and of the line
	Fraction float64 // of the capacity, which it may hold
	Slots    int64   // leases at once, those that it waits for included
	Queued   int64   // waiters in line
	// Stranger marks an account whose name nobody vouches for. All of them together have the share of one
	// account with weight 1, so that nobody gains by inventing names.
	Stranger bool
}

// Account is what one tenant holds. The zero value holds nothing and has no ceilings; it belongs to the
// pool that it is first used with, whose lock guards it.
type Account struct {
	limits Limits
	party
	active bool
	queues []*queue      // where it waits, one for each line it ever waited in
	crowd  node[Account] // its place by what it has in line
}

// party is what a share is measured for: an account, or all strangers together.
type party struct {
	held, used   int64 // bytes and slots
	waiting      int64 // waiters in line
	waitingBytes int64
	members      int64 // active accounts; of strangers only
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
	p.countLocked(a, -was.held, -was.used, -was.waiting, -was.waitingBytes)
	p.unplaceLocked(a)
	a.limits = l
	p.countLocked(a, was.held, was.used, was.waiting, was.waitingBytes)
	p.serveLocked()
}

// countLocked changes what a holds and waits for, and with it its place in line.
func (p *Pool) countLocked(a *Account, held, used, waiting, waitingBytes int64) {
	a.add(held, used, waiting, waitingBytes)
	stranger := a.limits.Stranger
	if stranger {
		p.mu.strangers.add(held, used, waiting, waitingBytes)
	}
	if active := a.held > 0 || a.used > 0 || a.waiting > 0; active != a.active {
		a.active = active
		sign := float64(1)
		if !active {
			sign = -1
		}
		switch {
		case !stranger:
			p.mu.weights += sign * a.weight()
			p.mu.parties += int64(sign)
		default:
			before := p.mu.strangers.members
			p.mu.strangers.members += int64(sign)
			if before == 0 || p.mu.strangers.members == 0 {
				p.mu.weights += sign
				p.mu.parties += int64(sign)
			}
		}
		if p.mu.parties == 0 {
			p.mu.weights = 0 // no dust of sums and differences
		}
	}
	if a.waiting > 0 || a.crowd.on() {
		p.placeLocked(a)
	}
}

func (t *party) add(held, used, waiting, waitingBytes int64) {
	t.held += held
	t.used += used
	t.waiting += waiting
	t.waitingBytes += waitingBytes
}

// dominance is the larger of the shares of bytes and slots that t holds, for its weight.
func (p *Pool) dominance(t *party, weight float64) float64 {
	return max(float64(t.held)/float64(max(1, p.mu.capacity)), float64(t.used)/float64(max(1, p.slots))) / weight
}

// crowding is the larger of the shares of places and bytes that t has in line, for its weight.
func (p *Pool) crowding(t *party, weight float64) float64 {
	return max(
		float64(t.waiting)/float64(max(1, p.maxQueued)),
		float64(t.waitingBytes)/float64(max(1, p.mu.maxQueuedBytes)),
	) / weight
}

// overLocked returns which ceiling of a this much more would break, or Granted. What a waits for counts as
// if it had it, so that nobody who was let into the line meets a ceiling at its end.
func (p *Pool) overLocked(a *Account, slots, bytes int64) Result {
	if most := a.limits.Slots; most > 0 && slots > 0 && a.used+a.waiting >= most {
		return Result{Outcome: OverSlots, Observed: a.used + a.waiting, Limit: most}
	}
	f := a.limits.Fraction
	if f == 0 || f >= 1 || bytes == 0 {
		return Result{}
	}
	most := int64(f * float64(p.mu.capacity))
	if bytes > most {
		return Result{Outcome: TooLarge, Observed: bytes, Limit: most}
	}
	if taken := a.held + a.waitingBytes; bytes > most-taken {
		return Result{Outcome: OverBytes, Observed: taken + bytes, Limit: most}
	}
	return Result{}
}

// overShareLocked reports whether a would hold more than its fair share with this many bytes more. Whoever
// is alone has no share to exceed.
func (p *Pool) overShareLocked(a *Account, bytes int64) bool {
	weights, parties, members := p.mu.weights, p.mu.parties, p.mu.strangers.members
	if !a.active { // it will be
		if !a.limits.Stranger || members == 0 {
			weights += a.weight()
			parties++
		}
		if a.limits.Stranger {
			members++
		}
	}
	share := float64(p.mu.capacity) * a.weight() / weights
	if a.limits.Stranger {
		share /= float64(members)
	}
	if parties == 1 && (!a.limits.Stranger || members == 1) {
		return false
	}
	return float64(a.held)+float64(bytes) > share
}
