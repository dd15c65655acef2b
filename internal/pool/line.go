// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"
	"time"
)

// waiter is one request that is not answered yet. The pool's lock guards it.
type waiter struct {
	lease   *Lease
	gate    *Gate
	slots   int64 // 1 for a new lease, 0 for growth
	bytes   int64
	through int64 // of the batch at the gate

	since   time.Time // zero if it does not wait
	allowed time.Duration

	next, prev *waiter
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

// line is a queue of waiters, first in, first out: a list rather than a slice, since those that give up
// leave from its middle.
type line struct {
	head, tail *waiter
	len        int64
	bytes      int64
}

func (q *line) push(w *waiter) {
	if w.prev = q.tail; w.prev == nil {
		q.head = w
	} else {
		w.prev.next = w
	}
	q.tail = w
	q.len++
	q.bytes += w.bytes
}

func (q *line) remove(w *waiter) {
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
	q.bytes -= w.bytes
}

// first returns the waiter whose turn it is: the oldest whose gate is open. It looks at one waiter more
// than there are in front of a full gate, which MaxQueued bounds.
func (q *line) first() *waiter {
	for w := q.head; w != nil; w = w.next {
		if !w.gate.full() {
			return w
		}
	}
	return nil
}
