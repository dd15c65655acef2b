// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"sync"
	"time"
)

// Settings bound a pool. They are set by code that has validated them.
type Settings struct {
	Capacity       int64         // bytes that leases may hold together
	Slots          int64         // leases that may be held at once
	MaxQueued      int64         // waiters in line; 0 refuses what does not fit at once
	MaxQueuedBytes int64         // bytes that may wait; an empty line takes one waiter of any size
	QueueTimeout   time.Duration // longest wait in line
}

// Outcome is how the pool answered.
type Outcome uint8

// The outcomes, with what Result.Observed and Result.Limit mean for each.
const (
	Granted   Outcome = iota
	TooLarge          // bytes needed, by this lease in all / capacity: it can never fit
	LineFull          // waiters in line / allowed
	LineHeavy         // bytes that would wait / allowed
	QueueFull         // waiters of this account in line / allowed
	OverSlots         // leases of this account, those that wait included / its ceiling
	OverBytes         // bytes that this account would hold / its ceiling
	NoSlot            // the wait ended short of a slot: milliseconds waited / allowed
	NoBytes           // the wait ended short of bytes: bytes needed / capacity
	Ended             // the caller's context ended
	Released          // the lease that was to grow has ended
	Closed            // the pool is closed, or drains and had no room at once
)

// Result is the answer to one request. On anything but Granted the request holds nothing.
type Result struct {
	Outcome         Outcome
	Waited          time.Duration // in line
	Observed, Limit int64
}

// Request asks for the bytes of one batch, and for a slot where it asks for a lease of its own.
type Request struct {
	Account *Account // who it is for, and whose slot and place in line it takes; never nil
	Gate    *Gate    // a ceiling of the caller's own, or nil
	Bytes   int64    // in all; not negative
	Others  []Share  // what of it is for others, none of them twice; kept, and changed when bytes are given back
	// Provisional marks bytes that do not exist yet and are an estimate, which the first Settle replaces.
	Provisional bool
	// Parked are the bytes that a provisional request occupies while it waits; any other waits with what it
	// asks for.
	Parked int64
	// Debt grants at once whatever the pool holds, even closed: for bytes that will exist in any case.
	Debt bool
}

func (r *Request) parked() int64 {
	if r.Provisional {
		return r.Parked
	}
	return r.Bytes
}

// Share is what one account has in a batch.
type Share struct {
	Account *Account
	Bytes   int64
}

// Gate is a ceiling on the leases that pass one user of the pool at once. The pool's lock guards it.
type Gate struct {
	max   int64
	used  int64
	bytes int64 // of the batches that pass, however they are paid for
}

// NewGate returns a gate that lets limit leases pass at once.
func NewGate(limit int64) *Gate { return &Gate{max: limit} }

func (g *Gate) full() bool { return g != nil && g.used >= g.max }

type state uint8

const (
	open state = iota
	draining
	closed
)

// Pool grants bytes and slots. All methods are safe for concurrent use.
type Pool struct {
	slots        int64
	maxQueued    int64
	queueTimeout time.Duration

	mu struct {
		sync.Mutex
		state          state
		capacity       int64
		best           int64 // what capacity may be at another time
		reserved       int64 // of capacity
		maxQueuedBytes int64
		squeezed       bool  // nobody may have more than its fair share
		held           int64 // Σ bytes of leases
		carried        int64 // Σ bytes that ended leases left with their accounts
		owed           int64 // bytes that no lease covers; all three above capacity are debt
		encoded        int64 // of the bytes held or waiting, those of provisional leases
		used           int64 // slots
		growing        int64 // leases with a slot that wait for more
		growth         fifo  // holders that want more

		lines               []*line                                    // those that hold nothing
		queued, queuedBytes int64                                      // in all of them
		age                 uint64                                     // of the last to join
		claims              struct{ known, strangers ladder[Account] } // of who waits

		strangers party   // all of them
		members   int64   // strangers that hold or wait
		parties   int64   // accounts that hold or wait, strangers counted as one
		weights   float64 // of them
	}
}

// New returns an open pool.
func New(s Settings) *Pool {
	p := &Pool{slots: s.Slots, maxQueued: s.MaxQueued, queueTimeout: s.QueueTimeout}
	p.mu.capacity, p.mu.best, p.mu.maxQueuedBytes = s.Capacity, s.Capacity, s.MaxQueuedBytes
	return p
}

// Acquire grants r a slot and its bytes together and makes l, which must be new, their lease. What does
// not fit waits for at most the queue timeout or a quarter of the time that ctx has left, whichever is
// shorter, so that a caller is answered while it can still make use of the answer.
func (p *Pool) Acquire(ctx context.Context, l *Lease, r Request) Result {
	l.pool, l.account, l.provisional = p, r.Account, r.Provisional
	if ctx.Err() != nil && !r.Debt {
		return Result{Outcome: Ended}
	}
	p.mu.Lock()
	if !r.Debt {
		if res := p.refusedLocked(&r); res.Outcome != Granted {
			p.mu.Unlock()
			return res
		}
		if !p.freeLocked(r.Gate, 1, r.Bytes) || p.behindLocked(&r) {
			return p.queueLocked(ctx, waiter{
				lease: l, account: r.Account, others: r.Others, gate: r.Gate, slots: 1, bytes: r.Bytes, through: r.Bytes,
				parked: r.parked(),
			})
		}
	}
	l.others = r.Others
	p.chargeLocked(l, r.Gate, 1, r.Bytes, r.Bytes)
	p.serveLocked()
	p.mu.Unlock()
	return Result{}
}

// refusedLocked returns why r is refused whoever else holds what, or Granted: what can never fit, and what
// an account's own ceilings forbid, which is its own doing and not to be waited for.
func (p *Pool) refusedLocked(r *Request) Result {
	if p.mu.state == closed {
		return Result{Outcome: Closed}
	}
	if r.Bytes > p.mu.best {
		return Result{Outcome: TooLarge, Observed: r.Bytes, Limit: p.mu.best}
	}
	return p.ceilingsLocked(r, nil)
}

// behindLocked reports whether somebody goes before r although it fits: a holder within its share that
// wants more, one of its own account that came before, or the one for whom it is held back.
func (p *Pool) behindLocked(r *Request) bool {
	if p.mu.queued == 0 && p.mu.growth.head == nil {
		return false
	}
	late := p.lateLocked()
	if _, within := p.growthLocked(late); within {
		return true
	}
	for _, q := range r.Account.queues {
		if q.head != nil && !q.line.gate.full() {
			return true
		}
	}
	return late != nil && p.overShareLocked(r.Account, r.Bytes)
}

// Size is how much a pool may hold.
type Size struct {
	Capacity int64 // bytes that may be taken now
	// Best is what the capacity may be at another time, if that is more: what exceeds it can never fit.
	Best      int64
	Reserved  int64 // of the capacity, what is left alone for now; it takes nothing from anybody's share or ceiling
	MaxQueued int64 // bytes that may wait
	// Squeezed holds every account to its fair share of the capacity, as long as there are others, and to a
	// short line.
	Squeezed bool
}

// Resize gives the pool another size. Shrinking takes nothing back and sends nobody away.
func (p *Pool) Resize(s Size) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.best, p.mu.maxQueuedBytes, p.mu.squeezed = max(s.Capacity, s.Best), s.MaxQueued, s.Squeezed
	p.mu.reserved = s.Reserved
	if p.mu.capacity == s.Capacity {
		p.serveLocked()
		return
	}
	p.mu.capacity = s.Capacity
	for _, claims := range [...]*ladder[Account]{&p.mu.claims.known, &p.mu.claims.strangers} {
		for _, a := range claims.all() {
			p.placeLocked(a)
		}
	}
	p.serveLocked()
}

// Owe adds bytes that exist and that no lease covers, or takes them off where they are negative. They are
// nobody's, and leave less room for everybody.
func (p *Pool) Owe(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.owed += bytes
	p.serveLocked()
}

// Drain answers everybody who waits and lets nobody wait from now on. What fits at once is still granted.
func (p *Pool) Drain() { p.end(draining) }

// Close refuses everything from now on. Leases that are held stay valid until they are released.
func (p *Pool) Close() { p.end(closed) }

func (p *Pool) end(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.state = max(p.mu.state, s)
	for p.mu.growth.head != nil {
		p.answerLocked(p.mu.growth.head, Result{Outcome: Closed})
	}
	for _, l := range p.mu.lines {
		for _, o := range [...]*order{&l.known, &l.strangers} {
			for o.needs != 0 {
				p.answerLocked(o.any().head, Result{Outcome: Closed})
			}
		}
	}
}
