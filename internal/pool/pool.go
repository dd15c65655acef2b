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
	Account *Account // who it is for; never nil
	Gate    *Gate    // a ceiling of the caller's own, or nil
	Bytes   int64    // not negative
	// Provisional marks bytes that are an estimate, which the first Settle replaces.
	Provisional bool
	// Debt grants at once whatever the pool holds, even closed: for bytes that will exist in any case.
	Debt bool
}

// Account is what one tenant holds. The zero value is an account that holds nothing; it belongs to the
// pool that it is first used with, whose lock guards it.
type Account struct {
	held int64
	used int64
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
		growth         line  // of holders that want more
		line           line  // of those that hold nothing
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
	l.pool, l.account, l.provisional = p, r.Account, r.Provisional
	if ctx.Err() != nil && !r.Debt {
		return Result{Outcome: Ended}
	}
	p.mu.Lock()
	switch {
	case r.Debt:
	case p.mu.state == closed:
		p.mu.Unlock()
		return Result{Outcome: Closed}
	case r.Bytes > p.mu.capacity:
		limit := p.mu.capacity
		p.mu.Unlock()
		return Result{Outcome: TooLarge, Observed: r.Bytes, Limit: limit}
	case !p.freeLocked(r.Gate, 1, r.Bytes) || p.mu.growth.first() != nil || p.mu.line.first() != nil:
		return p.queueLocked(ctx, &waiter{lease: l, gate: r.Gate, slots: 1, bytes: r.Bytes, through: r.Bytes})
	}
	p.grantLocked(l, r.Gate, 1, r.Bytes, r.Bytes)
	p.mu.Unlock()
	return Result{}
}

// queueLocked refuses w or lets it wait in line. It is called with the lock held and returns without it.
func (p *Pool) queueLocked(ctx context.Context, w *waiter) Result {
	q, allowed := &p.mu.line, p.patience(ctx)
	var res Result
	switch {
	case p.mu.state == draining:
		res = Result{Outcome: Closed}
	case p.maxQueued == 0 || allowed <= 0:
		res = p.shortLocked(w)
	case q.len >= p.maxQueued:
		res = Result{Outcome: LineFull, Observed: q.len, Limit: p.maxQueued}
	case q.len > 0 && w.bytes > p.mu.maxQueuedBytes-q.bytes:
		res = Result{Outcome: LineHeavy, Observed: q.bytes + w.bytes, Limit: p.mu.maxQueuedBytes}
	default:
		return p.waitLocked(ctx, w, allowed)
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
	p.mu.Unlock()

	// A timer with a function costs half of one with a channel, which select has to enlist and withdraw.
	timer := time.AfterFunc(allowed, func() { p.giveUp(ctx, w) })
	defer timer.Stop()
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
	for _, q := range [...]*line{&p.mu.growth, &p.mu.line} {
		for q.head != nil {
			p.answerLocked(q.head, Result{Outcome: Closed})
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
		Queued: p.mu.line.len, MaxQueued: p.maxQueued, QueuedBytes: p.mu.line.bytes,
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
