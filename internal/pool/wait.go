// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"time"
)

// This file is how a caller waits: it joins the line, is answered or gives up.

// queueLocked refuses w or lets it wait in line. It is called with the lock held and returns without it.
func (p *Pool) queueLocked(ctx context.Context, w waiter) Result {
	const crowded = 8 // waiters of one account that wants more than its share of a full line, or of a squeezed pool
	allowed, a := p.patience(ctx), w.account
	var res Result
	switch {
	case p.mu.state == draining:
		res = Result{Outcome: Closed}
	case p.maxQueued == 0 || allowed <= 0:
		res = p.shortLocked(&w)
	case a.limits.Queued != 0 && a.waiting >= a.limits.Queued:
		res = Result{Outcome: QueueFull, Observed: a.waiting, Limit: max(0, a.limits.Queued)}
	case a.limits.Queued > crowded && a.waiting >= crowded &&
		(p.mu.squeezed || p.fullLocked(w.parked).Outcome != Granted && p.greedyLocked(&w)):
		res = Result{Outcome: QueueFull, Observed: a.waiting, Limit: crowded}
	default:
		if res = p.makeRoomLocked(&w); res.Outcome == Granted {
			waiting := w // on the heap only now, so that refusing costs no allocation
			return p.waitLocked(ctx, &waiting, allowed)
		}
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
		p.placeLocked(w.account)
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
