// SPDX-License-Identifier: Apache-2.0

package pool

// This file decides whose turn it is. All of it runs under the pool's lock.

// placeLocked puts a where it belongs in every line that it waits in, and among those that crowd them.
func (p *Pool) placeLocked(a *Account) {
	share := classOf(p.dominance(&a.party, a.weight()))
	for _, q := range a.queues {
		o := q.order()
		switch {
		case q.head == nil:
			if q.place.on() {
				o.remove(q)
			}
		case !q.place.on():
			o.put(q, share)
		case q.place.class != share || q.need != needOf(q.head.bytes):
			o.remove(q)
			o.put(q, share)
		}
	}
	crowd := p.crowdOf(a)
	class := classOf(p.crowding(&a.party, a.weight()))
	if a.crowd.on() {
		if a.waiting > 0 && a.crowd.class == class {
			return
		}
		crowd.remove(&a.crowd)
	}
	if a.waiting > 0 {
		a.crowd.of = a
		crowd.put(&a.crowd, class)
	}
}

// unplaceLocked takes a out of every order, for one that it does not belong to any more.
func (p *Pool) unplaceLocked(a *Account) {
	for _, q := range a.queues {
		if q.place.on() {
			q.order().remove(q)
		}
	}
	if a.crowd.on() {
		p.crowdOf(a).remove(&a.crowd)
	}
}

func (q *queue) order() *order {
	if q.account.limits.Stranger {
		return &q.line.strangers
	}
	return &q.line.known
}

func (p *Pool) crowdOf(a *Account) *ladder[Account] {
	if a.limits.Stranger {
		return &p.mu.crowds.strangers
	}
	return &p.mu.crowds.known
}

// nextLocked returns the waiter whose turn it is and who fits, or nil: of the lines whose gate is open,
// the one whose account holds the lowest share. All strangers together are one account for this.
func (p *Pool) nextLocked() *waiter {
	if p.mu.queued == 0 || p.mu.used >= p.slots {
		return nil
	}
	free := p.mu.capacity - p.mu.held
	p.setBarrierLocked()
	if b := p.mu.barrier; b != nil && !b.gate.full() && (b.bytes == 0 || b.bytes <= free) {
		return b
	}
	strangers := classOf(p.dominance(&p.mu.strangers, 1))
	var best *queue
	var share int
	for _, l := range p.mu.lines {
		if l.gate.full() {
			continue
		}
		if q := l.known.best(free, p.mayLocked); q != nil && (best == nil || before(q, q.place.class, best, share)) {
			best, share = q, q.place.class
		}
		q := l.strangers.best(free, p.mayLocked)
		switch {
		case q == nil:
		case best == nil || !best.account.limits.Stranger && before(q, strangers, best, share),
			best != nil && best.account.limits.Stranger && before(q, q.place.class, best, best.place.class):
			best, share = q, strangers
		}
	}
	if best == nil {
		return nil
	}
	return best.head
}

// mayLocked reports whether the head of q may go if it fits: nobody of its account came before it, and
// the barrier does not hold it back.
func (p *Pool) mayLocked(q *queue) bool {
	return q.head.first() && !p.heldBackLocked(q.account, q.head.bytes)
}

// first reports whether w is the oldest waiter of its account but for those whose gate is full.
func (w *waiter) first() bool {
	for _, q := range w.account.queues {
		if q.head != nil && q.head.age < w.age && !q.line.gate.full() {
			return false
		}
	}
	return true
}

// heldBackLocked reports whether the barrier holds back a grant: one that would leave its account above
// its fair share. What is granted within shares cannot use up the room of somebody within his.
func (p *Pool) heldBackLocked(a *Account, bytes int64) bool {
	b := p.mu.barrier
	return b != nil && b.account != a && p.overShareLocked(a, bytes)
}

// setBarrierLocked finds the one waiter for whom others are held back: the first of those past half of their
// time whom its grant would leave within its fair share.
func (p *Pool) setBarrierLocked() {
	if b := p.mu.barrier; b != nil && p.deservesLocked(b) {
		return
	}
	p.mu.barrier = nil
	for len(p.mu.late) > 0 && p.mu.late[0].done {
		p.mu.late[0] = nil
		p.mu.late = p.mu.late[1:]
	}
	for _, w := range p.mu.late[:min(len(p.mu.late), few)] {
		if p.deservesLocked(w) {
			p.mu.barrier = w
			return
		}
	}
}

// deservesLocked reports whether w, which is late, may have others held back for it.
func (p *Pool) deservesLocked(w *waiter) bool {
	return !w.done && w.first() && !p.overShareLocked(w.account, w.bytes)
}

// makeRoomLocked makes room in a full line for w, which has not joined it, and reports whether there is:
// from whoever crowds it most, all strangers being one, the youngest waiter is sent away, unless w's
// own account would crowd it more.
func (p *Pool) makeRoomLocked(w *waiter) bool {
	for p.lineFullLocked(w) {
		victim := p.crowdedBy()
		own := w.account.party
		own.add(0, 0, 1, w.bytes)
		ownCrowding := p.crowding(&own, w.account.weight())
		theirs := p.crowding(&victim.party, victim.weight())
		if w.account.limits.Stranger != victim.limits.Stranger {
			all := p.mu.strangers
			if victim.limits.Stranger {
				theirs = p.crowding(&all, 1)
			} else {
				all.add(0, 0, 1, w.bytes)
				ownCrowding = p.crowding(&all, 1)
			}
		}
		if victim == w.account || ownCrowding >= theirs {
			return false
		}
		p.answerLocked(victim.youngest(), Result{Outcome: LineFull, Observed: p.mu.queued, Limit: p.maxQueued})
	}
	return true
}

// lineFullLocked reports whether w would be one waiter, or its bytes, too many.
func (p *Pool) lineFullLocked(w *waiter) bool {
	return p.mu.queued >= p.maxQueued || p.mu.queued > 0 && w.bytes > p.mu.maxQueuedBytes-p.mu.queuedBytes
}

// crowdedBy returns the account that has most in line for its weight. Of strangers, it is the one that
// has most among them, if together they have more than any other.
func (p *Pool) crowdedBy() *Account {
	known, stranger := p.mu.crowds.known.highest(), p.mu.crowds.strangers.highest()
	switch {
	case known == nil:
		return stranger.of
	case stranger == nil || classOf(p.crowding(&p.mu.strangers, 1)) < known.class:
		return known.of
	default:
		return stranger.of
	}
}

// youngest returns the last waiter of a to have joined.
func (a *Account) youngest() *waiter {
	var last *waiter
	for _, q := range a.queues {
		if q.tail != nil && (last == nil || q.tail.age > last.age) {
			last = q.tail
		}
	}
	return last
}

// queueOf returns the queue of a at gate g.
func (p *Pool) queueOf(a *Account, g *Gate) *queue {
	for _, q := range a.queues {
		if q.line.gate == g {
			return q
		}
	}
	q := &queue{account: a, line: p.lineOf(g)}
	a.queues = append(a.queues, q)
	return q
}

// lineOf returns the line in front of g.
func (p *Pool) lineOf(g *Gate) *line {
	for _, l := range p.mu.lines {
		if l.gate == g {
			return l
		}
	}
	l := &line{gate: g}
	p.mu.lines = append(p.mu.lines, l)
	return l
}
