// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"math"
	"slices"
	"time"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// reference is what a pool has to do, as plainly as it can be written: it keeps no figure that it could
// count anew, so there is none that could drift. It shares nothing with the pool but the types of its
// answers.
type reference struct {
	settings     pool.Settings
	gates        []int64 // how many may pass each
	capacity     int64
	drained      bool
	closed       bool
	now          time.Duration
	leases       []*refLease // all that hold something
	growth, line []*refCall  // oldest first
}

const noGate = -1

type refLease struct {
	account, gate  int
	bytes, through int64
	slot           bool
	provisional    bool
	ended          bool
	root           *refLease
}

// refCall is one request and its answer.
type refCall struct {
	lease          *refLease
	gate           int
	slot           bool
	bytes, through int64
	joined         time.Duration
	allowed        time.Duration
	answered       bool
	result         pool.Result
}

// caller is the context of a request: it has ended, or it has some time left.
type caller struct {
	ended bool
	left  time.Duration
}

var patient = caller{left: math.MaxInt64}

func (m *reference) sum(of func(*refLease) int64) (n int64) {
	for _, l := range m.leases {
		n += of(l)
	}
	return n
}

func (m *reference) held() int64 { return m.sum(func(l *refLease) int64 { return l.bytes }) }

func (m *reference) used() int64 { return m.sum(func(l *refLease) int64 { return count(l.slot) }) }

func (m *reference) account(a int) (bytes, slots int64) {
	return m.sum(func(l *refLease) int64 { return l.bytes * count(l.account == a) }),
		m.sum(func(l *refLease) int64 { return count(l.slot && l.account == a) })
}

func (m *reference) gate(g int) (bytes, used int64) {
	return m.sum(func(l *refLease) int64 { return l.through * count(l.gate == g) }),
		m.sum(func(l *refLease) int64 { return count(l.gate == g) })
}

func (m *reference) full(g int) bool {
	if g == noGate {
		return false
	}
	_, used := m.gate(g)
	return used >= m.gates[g]
}

// batch is what the whole batch of l holds.
func (m *reference) batch(l *refLease) int64 {
	return m.sum(func(o *refLease) int64 { return o.bytes * count(holder(o) == holder(l)) })
}

func (m *reference) fits(c *refCall) bool {
	return !m.full(c.gate) &&
		(!c.slot || m.used() < m.settings.Slots) &&
		(c.bytes == 0 || m.held()+c.bytes <= m.capacity)
}

// next is whose turn it is: the oldest that is not at a full gate.
func (m *reference) next(q []*refCall) *refCall {
	for _, c := range q {
		if !m.full(c.gate) {
			return c
		}
	}
	return nil
}

func (m *reference) grant(c *refCall) {
	l := c.lease
	if !slices.Contains(m.leases, l) {
		m.leases = append(m.leases, l)
	}
	l.bytes += c.bytes
	l.slot = l.slot || c.slot
	if c.gate != noGate {
		l.gate, l.through = c.gate, c.through
	}
	m.answer(c, pool.Result{Outcome: pool.Granted})
}

func (m *reference) answer(c *refCall, r pool.Result) {
	if c.allowed > 0 {
		r.Waited = m.now - c.joined
	}
	c.answered, c.result = true, r
	is := func(o *refCall) bool { return o == c }
	m.growth, m.line = slices.DeleteFunc(m.growth, is), slices.DeleteFunc(m.line, is)
}

// short refuses c by what it lacks.
func (m *reference) short(c *refCall) {
	if m.full(c.gate) || c.slot && m.used() >= m.settings.Slots {
		waited := int64(0)
		if c.allowed > 0 {
			waited = (m.now - c.joined).Milliseconds()
		}
		m.answer(c, pool.Result{Outcome: pool.NoSlot, Observed: waited, Limit: c.allowed.Milliseconds()})
		return
	}
	m.answer(c, pool.Result{Outcome: pool.NoBytes, Observed: m.batch(c.lease) + c.bytes, Limit: m.capacity})
}

// settle grants until nothing can be granted.
func (m *reference) settle() {
	for {
		turn := m.next(m.growth)
		if turn == nil {
			turn = m.next(m.line)
		}
		switch {
		case turn != nil && m.fits(turn):
			m.grant(turn)
		case len(m.growth) > 0 && m.everyHolderGrows():
			m.short(m.growth[len(m.growth)-1])
		default:
			return
		}
	}
}

func (m *reference) everyHolderGrows() bool {
	for _, l := range m.leases {
		grows := slices.ContainsFunc(m.growth, func(c *refCall) bool { return holder(c.lease) == l })
		if l.slot && !grows {
			return false
		}
	}
	return true
}

func (m *reference) wait(c *refCall, who caller) {
	c.joined, c.allowed = m.now, min(m.settings.QueueTimeout, who.left/4)
	if c.slot {
		m.line = append(m.line, c)
	} else {
		m.growth = append(m.growth, c)
	}
	m.settle()
}

func (m *reference) acquire(c *refCall, who caller, debt bool) {
	var waiting int64
	for _, o := range m.line {
		waiting += o.bytes
	}
	n, s := int64(len(m.line)), m.settings
	switch {
	case debt:
		m.grant(c)
	case who.ended:
		m.answer(c, pool.Result{Outcome: pool.Ended})
	case m.closed:
		m.answer(c, pool.Result{Outcome: pool.Closed})
	case c.bytes > m.capacity:
		m.answer(c, pool.Result{Outcome: pool.TooLarge, Observed: c.bytes, Limit: m.capacity})
	case m.fits(c) && m.next(m.growth) == nil && m.next(m.line) == nil:
		m.grant(c)
	case m.drained:
		m.answer(c, pool.Result{Outcome: pool.Closed})
	case s.MaxQueued == 0:
		m.short(c)
	case n >= s.MaxQueued:
		m.answer(c, pool.Result{Outcome: pool.LineFull, Observed: n, Limit: s.MaxQueued})
	case n > 0 && waiting+c.bytes > s.MaxQueuedBytes:
		m.answer(c, pool.Result{Outcome: pool.LineHeavy, Observed: waiting + c.bytes, Limit: s.MaxQueuedBytes})
	default:
		m.wait(c, who)
	}
	m.settle()
}

func (m *reference) grow(c *refCall, who caller) {
	needed := m.batch(c.lease) + c.bytes
	switch {
	case c.lease.ended || holder(c.lease).ended:
		m.answer(c, pool.Result{Outcome: pool.Released})
	case who.ended:
		m.answer(c, pool.Result{Outcome: pool.Ended})
	case m.closed:
		m.answer(c, pool.Result{Outcome: pool.Closed})
	case c.bytes > 0 && needed > m.capacity:
		m.answer(c, pool.Result{Outcome: pool.TooLarge, Observed: needed, Limit: m.capacity})
	case m.fits(c) && (c.bytes == 0 || m.next(m.growth) == nil):
		m.grant(c)
	case m.drained:
		m.answer(c, pool.Result{Outcome: pool.Closed})
	default:
		m.wait(c, who)
	}
	m.settle()
}

func (m *reference) shrink(c *refCall) {
	if c.lease.ended {
		m.answer(c, pool.Result{Outcome: pool.Released})
		return
	}
	c.lease.bytes = max(0, c.lease.bytes+c.bytes)
	m.answer(c, pool.Result{Outcome: pool.Granted})
	m.settle()
}

// settleLease is Lease.Settle: c.lease is the part, whose root is set.
func (m *reference) settleLease(c *refCall, who caller, debt bool) {
	root, bytes := c.lease.root, c.through
	if root.provisional && !root.ended && (debt || bytes <= max(m.capacity, root.bytes)) {
		root.provisional, root.bytes = false, bytes
		m.settle()
	}
	c.bytes = max(0, bytes-m.batch(root))
	if debt && !root.ended {
		m.grant(c)
		m.settle()
		return
	}
	m.grow(c, who)
}

// release reports whether there was anything to release.
func (m *reference) release(l *refLease) bool {
	if l.ended {
		return false
	}
	l.ended = true
	for _, c := range slices.Clone(m.growth) {
		if c.lease == l || c.lease.root == l {
			m.answer(c, pool.Result{Outcome: pool.Released})
		}
	}
	m.leases = slices.DeleteFunc(m.leases, func(o *refLease) bool { return o == l })
	l.bytes = 0
	m.settle()
	return true
}

// cancel ends the context of a call that waits.
func (m *reference) cancel(c *refCall) {
	m.answer(c, pool.Result{Outcome: pool.Ended})
	m.settle()
}

// pass lets time go by; waits end in their order.
func (m *reference) pass(d time.Duration) {
	for until := m.now + d; ; {
		var first *refCall
		for _, c := range m.waiting() {
			if first == nil || c.joined+c.allowed < first.joined+first.allowed {
				first = c
			}
		}
		if first == nil || first.joined+first.allowed > until {
			m.now = until
			return
		}
		m.now = first.joined + first.allowed
		m.short(first)
		m.settle()
	}
}

func (m *reference) end(closed bool) {
	m.drained, m.closed = true, m.closed || closed
	for _, c := range m.waiting() {
		m.answer(c, pool.Result{Outcome: pool.Closed})
	}
}

func (m *reference) waiting() []*refCall { return slices.Concat(m.growth, m.line) }

func holder(l *refLease) *refLease {
	if l.root != nil {
		return l.root
	}
	return l
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
