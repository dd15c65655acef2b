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
	Others  []Share  // what of it is for others, none of them twice; kept
	// Provisional marks bytes that are an estimate, which the first Settle replaces.
	Provisional bool
	// Debt grants at once whatever the pool holds, even closed: for bytes that will exist in any case.
	Debt bool
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
		maxQueuedBytes int64
		held           int64 // Σ bytes of leases; above capacity it is debt
		used           int64 // slots
		growing        int64 // leases with a slot that wait for more
		growth         fifo  // holders that want more

		lines               []*line // those that hold nothing
		queued, queuedBytes int64   // in all of them
		age                 uint64  // of the last to join
		late                []*waiter
		barrier             *waiter // one of late
		crowds              struct{ known, strangers ladder[Account] }

		strangers party
		parties   int64   // accounts that hold or wait, strangers counted as one
		weights   float64 // of them
	}
}

// New returns an open pool.
func New(s Settings) *Pool {
	p := &Pool{slots: s.Slots, maxQueued: s.MaxQueued, queueTimeout: s.QueueTimeout}
	p.mu.capacity, p.mu.maxQueuedBytes = s.Capacity, s.MaxQueuedBytes
	return p
}

// Acquire grants r a slot and its bytes together and makes l, which must be new, their lease. What does
// not fit waits for at most the queue timeout or a quarter of the time that ctx has left, whichever is
// shorter, so that a caller is answered while it can still make use of the answer.
func (p *Pool) Acquire(ctx context.Context, l *Lease, r Request) Result {
	l.pool, l.account, l.others, l.provisional = p, r.Account, r.Others, r.Provisional
	if ctx.Err() != nil && !r.Debt {
		return Result{Outcome: Ended}
	}
	p.mu.Lock()
	if !r.Debt {
		if res := p.refusedLocked(r); res.Outcome != Granted {
			p.mu.Unlock()
			return res
		}
		if !p.freeLocked(r.Gate, 1, r.Bytes) || p.behindLocked(r) {
			return p.queueLocked(ctx, &waiter{
				lease: l, account: r.Account, gate: r.Gate, slots: 1, bytes: r.Bytes, through: r.Bytes,
			})
		}
	}
	p.chargeLocked(l, r.Gate, 1, r.Bytes, r.Bytes)
	p.shareLocked(l, 1)
	p.serveLocked()
	p.mu.Unlock()
	return Result{}
}

// refusedLocked returns why r is refused whoever else holds what, or Granted: what can never fit, and what
// an account's own ceilings forbid, which is its own doing and not to be waited for.
func (p *Pool) refusedLocked(r Request) Result {
	if p.mu.state == closed {
		return Result{Outcome: Closed}
	}
	if r.Bytes > p.mu.capacity {
		return Result{Outcome: TooLarge, Observed: r.Bytes, Limit: p.mu.capacity}
	}
	own := r.Bytes
	for _, s := range r.Others {
		if res := p.overLocked(s.Account, 0, s.Bytes); res.Outcome != Granted {
			return res
		}
		own -= s.Bytes
	}
	return p.overLocked(r.Account, 1, own)
}

// behindLocked reports whether somebody goes before r although it fits: a holder within its share that
// wants more, one of its own account that came before, or the one for whom it is held back.
func (p *Pool) behindLocked(r Request) bool {
	if w := p.mu.growth.open(); w != nil && !p.overShareLocked(w.account, w.bytes) {
		return true
	}
	if p.mu.queued == 0 {
		return false
	}
	for _, q := range r.Account.queues {
		if q.head != nil && !q.line.gate.full() {
			return true
		}
	}
	p.setBarrierLocked()
	return p.heldBackLocked(r.Account, r.Bytes)
}

// queueLocked refuses w or lets it wait in line. It is called with the lock held and returns without it.
func (p *Pool) queueLocked(ctx context.Context, w *waiter) Result {
	const crowded = 8 // waiters of one account in a line that is full
	allowed, a := p.patience(ctx), w.account
	var res Result
	switch {
	case p.mu.state == draining:
		res = Result{Outcome: Closed}
	case p.maxQueued == 0 || allowed <= 0:
		res = p.shortLocked(w)
	case a.limits.Queued > 0 && a.waiting >= a.limits.Queued:
		res = Result{Outcome: QueueFull, Observed: a.waiting, Limit: a.limits.Queued}
	case a.limits.Queued > crowded && a.waiting >= crowded && p.lineFullLocked(w):
		res = Result{Outcome: QueueFull, Observed: a.waiting, Limit: crowded}
	case p.makeRoomLocked(w):
		return p.waitLocked(ctx, w, allowed)
	case p.mu.queued >= p.maxQueued:
		res = Result{Outcome: LineFull, Observed: p.mu.queued, Limit: p.maxQueued}
	default:
		res = Result{Outcome: LineHeavy, Observed: p.mu.queuedBytes + w.bytes, Limit: p.mu.maxQueuedBytes}
	}
	p.mu.Unlock()
	return res
}

// patience is how long a request with this context may wait.
func (p *Pool) patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(p.queueTimeout, time.Until(deadline)/4)
	}
	return p.queueTimeout
}

// waitLocked puts w at the end of its line and waits for the answer. It is called with the lock held and
// returns without it.
func (p *Pool) waitLocked(ctx context.Context, w *waiter, allowed time.Duration) Result {
	w.since, w.allowed, w.answered = time.Now(), allowed, make(chan struct{})
	p.enterLocked(w)
	p.serveLocked()
	if !w.done {
		// A timer with a function costs half of one with a channel, which select has to enlist and withdraw.
		w.timer = time.AfterFunc(allowed/2, func() { p.timePassed(ctx, w) })
		defer w.timer.Stop()
	}
	p.mu.Unlock()

	select {
	case <-w.answered:
	case <-ctx.Done():
		p.giveUp(ctx, w)
	}
	res := w.result // nobody writes it any more: no lock needed
	if res.Outcome == Granted && ctx.Err() != nil {
		p.giveBack(w)
		res = Result{Outcome: Ended}
	}
	res.Waited = w.waited()
	return res
}

// timePassed is called at half of w's time, from when on others may be held back for it, and at its end.
func (p *Pool) timePassed(ctx context.Context, w *waiter) {
	p.mu.Lock()
	if w.late || w.done {
		p.mu.Unlock()
		p.giveUp(ctx, w)
		return
	}
	defer p.mu.Unlock()
	w.late = true
	w.timer.Reset(w.allowed - w.allowed/2)
	if w.slots > 0 {
		p.mu.late = append(p.mu.late, w)
	}
}

// giveUp answers w on behalf of whoever waits, unless it was answered meanwhile.
func (p *Pool) giveUp(ctx context.Context, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.done {
		return
	}
	res := p.shortLocked(w)
	if ctx.Err() != nil {
		res = Result{Outcome: Ended}
	}
	p.answerLocked(w, res)
	p.serveLocked() // it may have held back those behind it
}

// giveBack returns exactly what w was granted too late.
func (p *Pool) giveBack(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returnLocked(w)
}

// shortLocked says what w cannot be given now.
func (p *Pool) shortLocked(w *waiter) Result {
	if w.gate.full() || w.slots > 0 && p.mu.used+w.slots > p.slots {
		return Result{Outcome: NoSlot, Observed: w.waited().Milliseconds(), Limit: w.allowed.Milliseconds()}
	}
	return Result{Outcome: NoBytes, Observed: w.needed(), Limit: p.mu.capacity}
}

// Resize sets the bytes that leases may hold and those that may wait. Shrinking takes nothing back and
// sends nobody away.
func (p *Pool) Resize(capacity, maxQueuedBytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.capacity, p.mu.maxQueuedBytes = capacity, maxQueuedBytes
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

// Stats is the state of a pool at one moment.
type Stats struct {
	Held, Capacity    int64 // bytes
	Used, Slots       int64 // leases
	Queued, MaxQueued int64 // waiters in line
	QueuedBytes       int64 // what they wait with
	Growing           int64 // requests of holders that wait for more
}

// Stats returns what the pool holds now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Held: p.mu.held, Capacity: p.mu.capacity,
		Used: p.mu.used, Slots: p.slots,
		Queued: p.mu.queued, MaxQueued: p.maxQueued, QueuedBytes: p.mu.queuedBytes,
		Growing: p.mu.growth.len,
	}
}

// AccountStats returns the bytes and slots that a holds now.
func (p *Pool) AccountStats(a *Account) (bytes, slots int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return a.held, a.used
}

// GateStats returns the bytes of the batches that pass g now, their number, and how many may.
func (p *Pool) GateStats(g *Gate) (bytes, used, limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return g.bytes, g.used, g.max
}
