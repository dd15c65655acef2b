// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"
	"math/bits"
	"time"
)

// waiter is one request that is not answered yet. The pool's lock guards it.
type waiter struct {
	lease   *Lease
	account *Account
	others  []Share
	gate    *Gate
	queue   *queue // of the line it is in; nil for growth
	slots   int64  // 1 for a new lease, 0 for growth
	bytes   int64
	through int64 // of the batch at the gate
	parked  int64 // bytes that it occupies in line

	since   time.Time // zero if it does not wait
	allowed time.Duration
	age     uint64
	timer   *time.Timer
	late    bool // half of its time has passed

	next, prev *waiter // in its queue
	done       bool
	result     Result        // but for Waited
	answered   chan struct{} // closed with done
}

func (w *waiter) waited() time.Duration {
	if w.since.IsZero() {
		return 0
	}
	return time.Since(w.since)
}

// needed is what the whole batch would hold once w is granted; a sum too large to write is more than any
// pool has.
func (w *waiter) needed() int64 {
	h := w.lease.holder()
	if n := h.bytes + h.parts + w.bytes; n >= 0 {
		return n
	}
	return math.MaxInt64
}

// fifo is a queue of waiters, first in, first out: a list rather than a slice, since those that give up
// leave from its middle.
type fifo struct {
	head, tail *waiter
	len        int64
}

func (q *fifo) push(w *waiter) {
	if w.prev = q.tail; w.prev == nil {
		q.head = w
	} else {
		w.prev.next = w
	}
	q.tail = w
	q.len++
}

func (q *fifo) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.len--
}

// line is who waits for a new lease by way of one gate, or of none. A line whose gate is full is passed
// over as a whole, and nobody in it loses a place.
type line struct {
	gate      *Gate
	known     order
	strangers order
}

// queue is what one account has in a line, first in, first out.
type queue struct {
	fifo
	account *Account
	line    *line
	place   node[queue] // by its share
	late    node[queue] // by its share with what its head needs, if half of that one's time has passed
	need    int         // the class of what its head needs
}

// order is the accounts in a line, by what their heads need and then by the share that they hold. Needs
// are in classes of a doubling.
type order struct {
	needs   uint64 // which are filled
	ladders [64]*ladder[queue]
	late    ladder[queue]
}

// before reports whether a with this share goes before b with that one.
func before(a *queue, aShare int, b *queue, bShare int) bool {
	return aShare < bShare || aShare == bShare && a.head.age < b.head.age
}

// earlier returns which of the two goes first; either may be nil.
func earlier(a, b *queue) *queue {
	if a == nil || b != nil && before(b, b.place.class, a, a.place.class) {
		return b
	}
	return a
}

func needOf(bytes int64) int { return bits.Len64(uint64(bytes)) }

// put places q, whose head may have changed, by the share that its account holds now and the one that it
// would hold with what the head needs.
func (o *order) put(q *queue, share, with int) {
	need := needOf(q.head.bytes)
	if q.need != need {
		o.remove(q)
		q.need = need
	}
	if o.ladders[need] == nil {
		o.ladders[need] = new(ladder[queue])
	}
	q.place.of, q.late.of = q, q
	o.ladders[need].put(&q.place, share)
	o.needs |= 1 << need
	if q.head.late {
		o.late.put(&q.late, with)
	} else {
		o.late.remove(&q.late)
	}
}

// remove takes q out, if it is in.
func (o *order) remove(q *queue) {
	if !q.place.on() {
		return
	}
	l := o.ladders[q.need]
	l.remove(&q.place)
	if l.filled == [len(l.filled)]uint64{} {
		o.needs &^= 1 << q.need
	}
	o.late.remove(&q.late)
}

// any returns one of the queues.
func (o *order) any() *queue { return o.ladders[bits.TrailingZeros64(o.needs)].lowest().of }

// few is how many are looked at where the first will not do.
const few = 8

// best returns the queue of the lowest share whose head may go and needs no more than free, the oldest
// head among equals. A class of needs that free lies in holds some that fit and some that do not; a few
// of the lowest share are looked at.
func (o *order) best(free int64, may func(*queue) bool) *queue {
	var best *queue
	for needs := o.needs & (uint64(2)<<needOf(max(0, free)) - 1); needs != 0; needs &= needs - 1 {
		l := o.ladders[bits.TrailingZeros64(needs)]
		n := l.lowest()
		for i := 0; n != nil && i < few; i++ {
			q := n.of
			if best != nil && !before(q, n.class, best, best.place.class) {
				break
			}
			if (q.head.bytes == 0 || q.head.bytes <= free) && may(q) {
				best = q
				break
			}
			n = l.after(n)
		}
	}
	return best
}
