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
	p.addLocked(l, slots, bytes)
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

// addLocked changes what l holds; both may be negative. What is not another account's is its owner's.
func (p *Pool) addLocked(l *Lease, slots, bytes int64) {
	l.bytes += bytes
	p.mu.held += bytes
	p.countLocked(l.account, bytes, slots, 0, 0)
	if l.root != nil {
		l.root.parts += bytes
	}
}

// shareLocked moves what belongs to other accounts from l's owner to them, or back by sign -1.
func (p *Pool) shareLocked(l *Lease, sign int64) {
	for _, s := range l.others {
		p.countLocked(l.account, -sign*s.Bytes, 0, 0, 0)
		p.countLocked(s.Account, sign*s.Bytes, 0, 0, 0)
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
	p.shareLocked(l, -1)
	p.mu.used -= l.slots
	p.addLocked(l, -l.slots, -l.bytes)
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
	p.addLocked(w.lease, 0, -min(w.bytes, w.lease.bytes))
	p.serveLocked()
}

// serveLocked grants what can be granted, in order, and keeps holders from waiting for one another: when
// all of them want more nothing comes back by itself, and the last to ask goes without. That may leave
// nobody in front of the line, so it starts anew.
func (p *Pool) serveLocked() {
	for {
		grow := p.mu.growth.open()
		first := grow != nil && !p.overShareLocked(grow.account, grow.bytes)
		switch w := p.nextLocked(); {
		case first && p.freeLocked(grow.gate, 0, grow.bytes):
			p.serveOneLocked(grow)
		case !first && w != nil:
			p.serveOneLocked(w)
		case grow != nil && p.freeLocked(grow.gate, 0, grow.bytes):
			p.serveOneLocked(grow)
		case p.mu.growth.tail != nil && p.mu.growing >= p.mu.used:
			p.answerLocked(p.mu.growth.tail, p.shortLocked(p.mu.growth.tail))
		default:
			return
		}
	}
}

// serveOneLocked grants w.
func (p *Pool) serveOneLocked(w *waiter) {
	p.leaveLocked(w)
	p.chargeLocked(w.lease, w.gate, w.slots, w.bytes, w.through)
	if w.slots > 0 {
		p.shareLocked(w.lease, 1)
	}
	w.answer(Result{})
}

// open returns the oldest of holders that want more whose gate is open.
func (q *fifo) open() *waiter {
	for w := q.head; w != nil; w = w.next {
		if !w.gate.full() {
			return w
		}
	}
	return nil
}

// enterLocked puts w at the end of where it waits: holders apart from those that hold nothing.
func (p *Pool) enterLocked(w *waiter) {
	p.mu.age++
	w.age = p.mu.age
	if w.slots == 0 {
		p.mu.growth.push(w)
		if h := w.lease.holder(); h.waiting == 0 {
			p.mu.growing++
			h.waiting++
		} else {
			h.waiting++
		}
		return
	}
	p.queueOf(w.account, w.gate).push(w)
	p.mu.queued++
	p.mu.queuedBytes += w.bytes
	p.countLocked(w.account, 0, 0, 1, w.bytes)
}

// leaveLocked takes w out of where it waits.
func (p *Pool) leaveLocked(w *waiter) {
	if w.slots == 0 {
		p.mu.growth.remove(w)
		if h := w.lease.holder(); h.waiting == 1 {
			p.mu.growing--
			h.waiting--
		} else {
			h.waiting--
		}
		return
	}
	p.queueOf(w.account, w.gate).remove(w)
	p.mu.queued--
	p.mu.queuedBytes -= w.bytes
	p.countLocked(w.account, 0, 0, -1, -w.bytes)
}

// answerLocked takes w out of its line and tells it what became of it.
func (p *Pool) answerLocked(w *waiter, r Result) {
	p.leaveLocked(w)
	w.answer(r)
}

// answer tells w, which waits nowhere any more, what became of it.
func (w *waiter) answer(r Result) {
	w.done, w.result = true, r
	close(w.answered)
}
