// SPDX-License-Identifier: Apache-2.0

package pool

// This file is the ledger: every change to what is held, and who is served by it. All of it runs under
// the pool's lock.

// freeLocked reports whether there is room for this much.
func (p *Pool) freeLocked(g *Gate, slots, bytes int64) bool {
	return !g.full() &&
		(slots == 0 || p.mu.used+slots <= p.slots) &&
		(bytes == 0 || bytes <= p.roomLocked())
}

// roomLocked returns the bytes that can be granted, less than none where there is debt.
func (p *Pool) roomLocked() int64 {
	return p.mu.capacity - p.mu.reserved - p.mu.held - p.mu.carried - p.mu.owed
}

// carryLocked adds to what a's ended leases left alive.
func (p *Pool) carryLocked(a *Account, bytes int64) {
	p.mu.carried += bytes
	p.countLocked(a, party{carried: bytes})
}

// chargeLocked gives l its place at the gate, slots and bytes. Through is the size of the batch that
// passes the gate, which is more than bytes where part of it is paid for already.
func (p *Pool) chargeLocked(l *Lease, g *Gate, slots, bytes, through int64) {
	if slots > 0 {
		l.slots, l.bytes = int8(slots), bytes
		p.mu.used += slots
		p.mu.held += bytes
		p.estimateLocked(l, bytes)
		p.holdLocked(l, 1)
	} else {
		p.addLocked(l, bytes)
	}
	if g != nil {
		l.gate, l.through = g, through
		g.used++
		g.bytes += through
	}
}

// addLocked changes the bytes that l holds, which are its owner's; only when it has no more of its own does
// it give back those of others.
func (p *Pool) addLocked(l *Lease, bytes int64) {
	l.bytes += bytes
	p.mu.held += bytes
	p.estimateLocked(l, bytes)
	if l.root != nil {
		l.root.parts += bytes
	}
	own := l.bytes
	for _, s := range l.others {
		own -= s.Bytes
	}
	for i := 0; own < 0 && i < len(l.others); i++ {
		s := &l.others[i]
		n := min(s.Bytes, -own)
		s.Bytes -= n
		own += n
		bytes += n
		p.countLocked(s.Account, party{held: -n})
	}
	p.countLocked(l.account, party{held: bytes})
}

// estimateLocked counts bytes of l that do not exist yet, if it is an estimate.
func (p *Pool) estimateLocked(l *Lease, bytes int64) {
	if l.provisional {
		p.mu.encoded += bytes
	}
}

// releaseLocked ends l and gives back all of it, but for what is left to accounts that carry it.
func (p *Pool) releaseLocked(l *Lease, left ...Share) {
	if l.ended {
		return
	}
	l.ended = true
	for _, s := range left {
		p.carryLocked(s.Account, s.Bytes)
	}
	if l.holder().waiting > 0 {
		p.abandonLocked(l)
	}
	p.holdLocked(l, -1)
	p.estimateLocked(l, -l.bytes)
	p.mu.used -= int64(l.slots)
	p.mu.held -= l.bytes
	if l.root != nil {
		l.root.parts -= l.bytes
	}
	l.slots, l.bytes, l.others = 0, 0, nil
	if l.gate != nil {
		l.gate.used--
		l.gate.bytes -= l.through
	}
	p.serveLocked()
}

// abandonLocked answers those requests for more that end with l.
func (p *Pool) abandonLocked(l *Lease) {
	for w := p.mu.growth.head; w != nil; {
		next := w.next
		if w.lease == l || w.lease.root == l {
			p.answerLocked(w, Result{Outcome: Released})
		}
		w = next
	}
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
	for p.mu.queued > 0 || p.mu.growth.head != nil {
		late := p.lateLocked()
		growth, within := p.growthLocked(late)
		first := growth
		if !within {
			if w := p.nextLocked(late); w != nil {
				first = w
			}
		}
		switch {
		case first != nil && p.freeLocked(first.gate, first.slots, first.bytes):
			p.serveOneLocked(first)
		case p.mu.growth.tail != nil && p.mu.growing >= p.mu.used:
			p.answerLocked(p.mu.growth.tail, p.shortLocked(p.mu.growth.tail))
		default:
			return
		}
	}
}

// growthLocked returns the holder that wants more and whose turn it is, or nil: the first of those whom it
// leaves within their fair share, who go before everybody that holds nothing, or the first that nobody is
// late for.
func (p *Pool) growthLocked(late *waiter) (w *waiter, within bool) {
	for o := p.mu.growth.head; o != nil; o = o.next {
		switch {
		case o.gate.full():
		case !p.overShareLocked(o.account, o.bytes):
			return o, true
		case w == nil && late == nil:
			w = o
		}
	}
	return w, false
}

// serveOneLocked grants w, and its account goes behind its equals.
func (p *Pool) serveOneLocked(w *waiter) {
	if w.queue != nil {
		w.queue.order().remove(w.queue)
		w.lease.others = w.others
	}
	p.leaveLocked(w)
	p.chargeLocked(w.lease, w.gate, w.slots, w.bytes, w.through)
	w.answer(Result{})
}

// enterLocked puts w at the end of where it waits: holders apart from those that hold nothing.
func (p *Pool) enterLocked(w *waiter) {
	p.mu.age++
	w.age = p.mu.age
	if w.slots == 0 {
		p.mu.growth.push(w)
		h := w.lease.holder()
		if h.waiting++; h.waiting == 1 {
			p.mu.growing++
		}
	} else {
		w.queue = p.queueOf(w.account, w.gate)
		w.queue.push(w)
		p.mu.queued++
		p.mu.queuedBytes += w.parked
		p.estimateLocked(w.lease, w.parked)
	}
	p.wantLocked(w, 1)
}

// leaveLocked takes w out of where it waits.
func (p *Pool) leaveLocked(w *waiter) {
	if w.slots == 0 {
		p.mu.growth.remove(w)
		h := w.lease.holder()
		if h.waiting--; h.waiting == 0 {
			p.mu.growing--
		}
	} else {
		w.queue.remove(w)
		p.mu.queued--
		p.mu.queuedBytes -= w.parked
		p.estimateLocked(w.lease, -w.parked)
	}
	p.wantLocked(w, -1)
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
