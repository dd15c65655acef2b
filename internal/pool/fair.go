// SPDX-License-Identifier: Apache-2.0

package pool

// This file decides whose turn it is. All of it runs under the pool's lock.

// placeLocked puts a where it belongs in every line that it waits in, and among those that claim the most,
// at their top if its next batch is too wide.
func (p *Pool) placeLocked(a *Account) {
	weight, claim := a.weight(), 0
	share := classOf(p.dominance(a.party, weight))
	for _, q := range a.queues {
		if q.head == nil {
			q.order().remove(q)
			continue
		}
		with := float64(a.taken()+q.head.bytes) / float64(max(1, p.mu.capacity)) / weight
		q.order().put(q, share, classOf(with))
		if p.tooWideLocked(a, q.head.bytes) {
			claim = classes - 1
		}
	}
	if a.waiting == 0 {
		p.claimsOf(a).remove(&a.claim)
		return
	}
	a.claim.of = a
	p.claimsOf(a).put(&a.claim, max(claim, classOf(p.claim(a.party, weight))))
}

// unplaceLocked takes a out of every order, for one that it does not belong to any more.
func (p *Pool) unplaceLocked(a *Account) {
	for _, q := range a.queues {
		q.order().remove(q)
	}
	p.claimsOf(a).remove(&a.claim)
}

func (q *queue) order() *order {
	if q.account.limits.Stranger {
		return &q.line.strangers
	}
	return &q.line.known
}

func (p *Pool) claimsOf(a *Account) *ladder[Account] {
	if a.limits.Stranger {
		return &p.mu.claims.strangers
	}
	return &p.mu.claims.known
}

// nextLocked returns the waiter whose turn it is and who fits, or nil: late if it is not nil and fits, and
// else, of the lines whose gate is open, the one whose account holds the lowest share. All strangers
// together are one account for this.
func (p *Pool) nextLocked(late *waiter) *waiter {
	if p.mu.queued == 0 || p.mu.used >= p.slots {
		return nil
	}
	free := p.roomLocked()
	if late != nil && (late.bytes == 0 || late.bytes <= free) {
		return late
	}
	may := func(q *queue) bool {
		return q.head.first() && (late == nil || !p.overShareLocked(q.account, q.head.bytes))
	}
	var known, stranger *queue
	for _, l := range p.mu.lines {
		if !l.gate.full() {
			known = earlier(known, l.known.best(free, may))
			stranger = earlier(stranger, l.strangers.best(free, may))
		}
	}
	if known == nil || stranger != nil && before(stranger, classOf(p.dominance(p.mu.strangers, 1)), known, known.place.class) {
		known = stranger
	}
	if known == nil {
		return nil
	}
	return known.head
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

// fullLocked returns why the line has no room for a waiter with this many bytes, or Granted.
func (p *Pool) fullLocked(bytes int64) Result {
	switch {
	case p.mu.queued >= p.maxQueued:
		return Result{Outcome: LineFull, Observed: p.mu.queued, Limit: p.maxQueued}
	case p.mu.queued > 0 && bytes > p.mu.maxQueuedBytes-p.mu.queuedBytes:
		return Result{Outcome: LineHeavy, Observed: p.mu.queuedBytes + bytes, Limit: p.mu.maxQueuedBytes}
	}
	return Result{}
}

// makeRoomLocked makes room in line for w, which has not joined it, or returns why there is none. Whoever
// claims most, all strangers being one, loses its youngest waiter to somebody who claims less. A batch that
// is too wide, for which no room is made in the pool either, sends nobody away and is the first to go:
// otherwise a few of them would keep the line to themselves.
func (p *Pool) makeRoomLocked(w *waiter) Result {
	for {
		full := p.fullLocked(w.parked)
		if full.Outcome == Granted {
			return full
		}
		victim := p.greediestLocked()
		if victim == w.account || p.tooWideLocked(w.account, w.bytes) || !p.claimsLessLocked(w, victim) {
			p.serveLocked() // whoever was sent away may have held back others
			return full
		}
		p.answerLocked(victim.youngest(), full)
	}
}

// claimsLessLocked reports whether the account of w, with it, claims less than victim, or than one whose
// batch is too wide.
func (p *Pool) claimsLessLocked(w *waiter, victim *Account) bool {
	if victim.claim.class == classes-1 {
		return true
	}
	own, theirs := w.account.party, victim.party
	ownWeight, theirWeight := w.account.weight(), victim.weight()
	if w.account.limits.Stranger != victim.limits.Stranger {
		if victim.limits.Stranger {
			theirs = p.mu.strangers
		} else {
			own = p.mu.strangers
		}
	}
	own.add(party{waiting: 1, wanted: w.bytes})
	return p.claim(own, ownWeight) < p.claim(theirs, theirWeight)
}

// greediestLocked returns the account in line that claims most for its weight. Of strangers, it is the one
// that claims most among them, if together they claim more than any other.
func (p *Pool) greediestLocked() *Account {
	known, stranger := p.mu.claims.known.highest(), p.mu.claims.strangers.highest()
	switch {
	case known == nil:
		return stranger.of
	case stranger == nil || classOf(p.claim(p.mu.strangers, 1)) < known.class:
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
