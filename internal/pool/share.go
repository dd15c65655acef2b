// SPDX-License-Identifier: Apache-2.0

package pool

// This file measures who has how much of what all of them want.

// dominance is the larger of the shares of bytes and slots that t holds, for its weight.
func (p *Pool) dominance(t party, weight float64) float64 {
	return max(float64(t.taken())/float64(max(1, p.mu.capacity)), float64(t.used)/float64(max(1, p.slots))) / weight
}

// claim is what dominance would be if t held all that it waits for, too.
func (p *Pool) claim(t party, weight float64) float64 {
	return p.dominance(party{held: t.taken() + t.wanted, used: t.used + t.waiting}, weight)
}

// shareLocked returns the bytes that are a's fair share among those that hold or wait, a included. Strangers
// have one share, of which each has its part.
func (p *Pool) shareLocked(a *Account) (part, whole float64) {
	weights, members := p.mu.weights, p.mu.members
	if !a.active { // it will be
		if !a.limits.Stranger || members == 0 {
			weights += a.weight()
		}
		members++
	}
	whole = float64(p.mu.capacity) * a.weight() / weights
	if a.limits.Stranger {
		return whole / float64(members), whole
	}
	return whole, whole
}

// aloneLocked reports whether nobody but a holds anything or waits: it has no share to exceed.
func (p *Pool) aloneLocked(a *Account) bool {
	others := p.mu.parties
	if a.limits.Stranger && p.mu.members > 0 {
		others += p.mu.members - 1
	}
	if a.active {
		others--
	}
	return others == 0
}

// overShareLocked reports whether a would hold more than its fair share with this many bytes more.
func (p *Pool) overShareLocked(a *Account, bytes int64) bool {
	share, _ := p.shareLocked(a)
	return float64(a.taken())+float64(bytes) > share && !p.aloneLocked(a)
}

// tooWideLocked reports whether a batch alone is more than the share of a, or of all strangers.
func (p *Pool) tooWideLocked(a *Account, bytes int64) bool {
	_, share := p.shareLocked(a)
	return float64(bytes) > share
}

// greedyLocked reports whether the account of w would hold more than its fair share with w and all else that
// it waits for.
func (p *Pool) greedyLocked(w *waiter) bool {
	return p.overShareLocked(w.account, w.account.wanted+w.bytes)
}

// lateLocked returns a waiter past half of its time whose grant would leave its account within its fair
// share, or nil. While there is one, whatever would take an account above its share is held back: what is
// granted within shares cannot use up the room of somebody within his.
func (p *Pool) lateLocked() *waiter {
	if p.mu.queued == 0 {
		return nil
	}
	for _, l := range p.mu.lines {
		if l.gate.full() {
			continue
		}
		for _, o := range [...]*order{&l.known, &l.strangers} {
			// By what they would hold for their weight: if anybody deserves it, the lowest does.
			n := o.late.lowest()
			for i := 0; n != nil && i < few; i++ {
				if w := n.of.head; w.first() && !p.overShareLocked(w.account, w.bytes) {
					return w
				}
				n = o.late.after(n)
			}
		}
	}
	return nil
}
