// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"slices"
)

// Lease is what one batch holds. It is made by [Pool.Acquire] or [Lease.Settle] in memory that the
// caller provides, so that a caller which keeps more about a batch needs one allocation for all of it.
// A lease is a handle, not a number: nobody can give back more than it was granted, or give it back
// twice. All methods are safe for concurrent use.
type Lease struct {
	pool    *Pool
	account *Account
	others  []Share // of bytes, for other accounts
	gate    *Gate
	root    *Lease // of the part that Settle made; nil for a lease with a slot

	// Guarded by the pool's lock.
	bytes       int64
	through     int64 // what counts as passing gate
	parts       int64 // bytes held by the parts of this lease
	waiting     int32 // requests for more that wait
	slots       int8
	provisional bool
	ended       bool
}

// holder is the lease with a slot that l is, or is part of.
func (l *Lease) holder() *Lease {
	if l.root != nil {
		return l.root
	}
	return l
}

// Grow adds n bytes to the lease. What does not fit waits before everybody who holds nothing, at most as
// long as anything waits in line, and is refused at once when every other holder waits for more too.
// A negative n gives bytes back, never waits and is always granted.
func (l *Lease) Grow(ctx context.Context, n int64) Result {
	p := l.pool
	p.mu.Lock()
	if n <= 0 && !l.ended {
		p.addLocked(l, max(n, -l.bytes))
		p.serveLocked()
		p.mu.Unlock()
		return Result{}
	}
	return l.growLocked(ctx, nil, n, 0)
}

// Settle makes part, which must be new, the share that another user has in the batch of l: its place at
// the user's gate, and the bytes by which r exceeds what the batch holds already.
//
// If l is provisional, r's bytes and accounts replace its own: they are in memory by now, so they are charged
// at once, as debt if need be. Only the ceilings of accounts that had no part in it yet may refuse them.
// In any other case what does not fit waits and may be refused like growth.
func (l *Lease) Settle(ctx context.Context, part *Lease, r Request) Result {
	l = l.holder()
	p := l.pool
	p.mu.Lock()
	part.pool, part.account, part.root = p, l.account, l
	if l.provisional && !l.ended && (r.Debt || r.Bytes <= max(p.mu.best, l.bytes)) {
		if res := p.replaceLocked(l, r); res.Outcome != Granted {
			p.mu.Unlock()
			return res
		}
		part.account = l.account
	}
	more := max(0, r.Bytes-l.bytes-l.parts)
	if r.Debt && !l.ended {
		p.chargeLocked(part, r.Gate, 0, more, r.Bytes)
		p.serveLocked()
		p.mu.Unlock()
		return Result{}
	}
	return part.growLocked(ctx, r.Gate, more, r.Bytes)
}

// replaceLocked makes what an estimate said of l what r says: whose it is, and how much.
func (p *Pool) replaceLocked(l *Lease, r Request) Result {
	if r.Account == nil {
		r.Account = l.account
	}
	if !r.Debt {
		if res := p.ceilingsLocked(&r, l); res.Outcome != Granted {
			return res
		}
	}
	p.holdLocked(l, -1)
	p.mu.held += r.Bytes - l.bytes
	p.estimateLocked(l, -l.bytes)
	l.account, l.others, l.bytes, l.provisional = r.Account, r.Others, r.Bytes, false
	p.holdLocked(l, 1)
	p.serveLocked()
	return Result{}
}

// has reports whether a has a part in l.
func (l *Lease) has(a *Account) bool {
	return a == l.account || slices.ContainsFunc(l.others, func(s Share) bool { return s.Account == a })
}

// growLocked grants l n more bytes and its place at the gate. It is called with the lock held and returns
// without it.
func (l *Lease) growLocked(ctx context.Context, g *Gate, n, through int64) Result {
	p := l.pool
	over := p.overLocked(l.account, 0, n)
	w := waiter{lease: l, account: l.account, gate: g, bytes: n, through: through}
	var res Result
	switch needed := w.needed(); {
	case l.ended || l.holder().ended:
		res = Result{Outcome: Released}
	case ctx.Err() != nil:
		res = Result{Outcome: Ended}
	case p.mu.state == closed:
		res = Result{Outcome: Closed}
	case n > 0 && needed > p.mu.best:
		res = Result{Outcome: TooLarge, Observed: needed, Limit: p.mu.best}
	case over.Outcome != Granted:
		res = over
	case !g.full() && (n == 0 || p.freeLocked(g, 0, n) && !p.growsBehindLocked(l.account, n)):
		p.chargeLocked(l, g, 0, n, through)
		p.serveLocked()
	case p.mu.state == draining:
		res = Result{Outcome: Closed}
	default:
		waiting := w
		return p.waitLocked(ctx, &waiting, p.patience(ctx))
	}
	p.mu.Unlock()
	return res
}

// growsBehindLocked reports whether somebody goes before a holder of a that wants n more although it fits.
func (p *Pool) growsBehindLocked(a *Account, n int64) bool {
	if p.mu.queued == 0 && p.mu.growth.head == nil {
		return false
	}
	late := p.lateLocked()
	over := p.overShareLocked(a, n)
	w, within := p.growthLocked(late)
	return within || over && (late != nil || w != nil)
}

// Ended reports whether the lease, or the one it is a part of, has been released.
func (l *Lease) Ended() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.ended || l.holder().ended
}

// Settled reports whether the lease holds what it really takes, and not an estimate.
func (l *Lease) Settled() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return !l.holder().provisional
}

// Owe adds n bytes to the lease as debt, whatever the pool holds. A lease that has ended owes nothing.
func (l *Lease) Owe(n int64) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if !l.ended {
		l.pool.addLocked(l, n)
		l.pool.serveLocked() // over its share, its own growth lets others by
	}
}

// Release gives everything back and serves those who wait; requests of this lease for more are answered
// with Released. What is left of the batch's data is carried by its accounts from now on, see [Pool.Carry].
// Only the first call does anything; it returns true.
func (l *Lease) Release(left ...Share) bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	first := !l.ended
	l.pool.releaseLocked(l, left...)
	return first
}
