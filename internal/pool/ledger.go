// SPDX-License-Identifier: Apache-2.0

package pool

// This file is the ledger: every change to what is held, and who is served by it. All of it runs under
// the pool's lock.

// freeLocked reports whether there is room for this much.
func (p *Pool) freeLocked(g *Gate, slots, bytes int64) bool {
	return !g.full() &&
		(slots == 0 || p.mu.used+slots <= p.slots) &&
		(bytes == 0 || bytes <= p.mu.capacity-p.mu.held)
}

// chargeLocked gives l its place at the gate, slots and bytes. Through is the size of the batch that
// passes the gate, which is more than bytes where part of it is paid for already.
func (p *Pool) chargeLocked(l *Lease, g *Gate, slots, bytes, through int64) {
	l.slots += slots
	p.mu.used += slots
	l.account.used += slots
	p.addLocked(l, bytes)
	if g != nil {
		l.gate, l.through = g, through
		g.used++
		g.bytes += through
	}
}

// grantLocked charges a request that did not wait. Those behind waiters whose gate is full from now on are
// not held back by them any longer.
func (p *Pool) grantLocked(l *Lease, g *Gate, slots, bytes, through int64) {
	p.chargeLocked(l, g, slots, bytes, through)
	p.serveLocked()
}

// addLocked changes what l holds; bytes may be negative.
func (p *Pool) addLocked(l *Lease, bytes int64) {
	l.bytes += bytes
	p.mu.held += bytes
	l.account.held += bytes
	if l.root != nil {
		l.root.parts += bytes
	}
}

// releaseLocked ends l and gives back all of it.
func (p *Pool) releaseLocked(l *Lease) {
	if l.ended {
		return
	}
	l.ended = true
	for w := p.mu.growth.head; l.holder().waiting > 0 && w != nil; {
		next := w.next
		if w.lease == l || w.lease.root == l {
			p.answerLocked(w, Result{Outcome: Released})
		}
		w = next
	}
	p.addLocked(l, -l.bytes)
	p.mu.used -= l.slots
	l.account.used -= l.slots
	if l.gate != nil {
		l.gate.used--
		l.gate.bytes -= l.through
	}
	p.serveLocked()
}

// returnLocked takes back what w was granted: all of a new lease or part, or just the growth.
func (p *Pool) returnLocked(w *waiter) {
	if w.slots > 0 || w.gate != nil {
		p.releaseLocked(w.lease)
		return
	}
	p.addLocked(w.lease, -min(w.bytes, w.lease.bytes))
	p.serveLocked()
}

// serveLocked grants what can be granted, in order, and keeps holders from waiting for one another: when
// all of them want more nothing comes back by itself, and the last to ask goes without. That may leave
// nobody in front of the line, so it starts anew.
func (p *Pool) serveLocked() {
	for {
		switch {
		case p.serveNextLocked(&p.mu.growth):
		case p.mu.growth.first() == nil && p.serveNextLocked(&p.mu.line):
		case p.mu.growth.tail != nil && p.mu.growing >= p.mu.used:
			p.answerLocked(p.mu.growth.tail, p.shortLocked(p.mu.growth.tail))
		default:
			return
		}
	}
}

// serveNextLocked grants the request whose turn it is in q, if there is room for it.
func (p *Pool) serveNextLocked(q *line) bool {
	w := q.first()
	if w == nil || !p.freeLocked(w.gate, w.slots, w.bytes) {
		return false
	}
	p.chargeLocked(w.lease, w.gate, w.slots, w.bytes, w.through)
	p.answerLocked(w, Result{})
	return true
}

// enterLocked puts w at the end of its line.
func (p *Pool) enterLocked(w *waiter) {
	p.lineLocked(w).push(w)
	if h := w.lease.holder(); w.slots == 0 {
		if h.waiting++; h.waiting == 1 {
			p.mu.growing++
		}
	}
}

// leaveLocked takes w out of its line.
func (p *Pool) leaveLocked(w *waiter) {
	p.lineLocked(w).remove(w)
	if h := w.lease.holder(); w.slots == 0 {
		if h.waiting--; h.waiting == 0 {
			p.mu.growing--
		}
	}
}

// lineLocked is where w waits: holders apart from those that hold nothing.
func (p *Pool) lineLocked(w *waiter) *line {
	if w.slots == 0 {
		return &p.mu.growth
	}
	return &p.mu.line
}

// answerLocked takes w out of its line and tells it what became of it.
func (p *Pool) answerLocked(w *waiter, r Result) {
	p.leaveLocked(w)
	w.done, w.result = true, r
	close(w.answered)
}
