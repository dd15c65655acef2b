// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"
	"math/bits"
)

// ladder keeps things sorted by a positive figure in classes about 3 % wide, 32 to a doubling, and in
// the order they came within a class. Putting, removing and finding either end cost the same however
// many there are, which a heap or a scan does not.
type ladder[T any] struct {
	filled [classes / 64]uint64
	rungs  [classes]*node[T] // the first of its class; the others follow in a ring
}

// node is something's place on a ladder. The zero value is on none.
type node[T any] struct {
	of         *T
	next, prev *node[T]
	class      int
}

const (
	classes  = 1024
	lowest   = -29 // the power of two that the first class ends at
	perPower = 5   // bits: 32 classes to a power
)

// classOf returns the class of x, the first and the last of which have no end.
func classOf(x float64) int {
	const first = (1023 + lowest) << perPower
	return min(max(int(math.Float64bits(max(x, 0))>>(52-perPower))-first, 0), classes-1)
}

// put places n last in class, or leaves it where it is if that is its class already.
func (l *ladder[T]) put(n *node[T], class int) {
	if n.on() {
		if n.class == class {
			return
		}
		l.remove(n)
	}
	n.class = class
	first := l.rungs[class]
	if first == nil {
		n.next, n.prev = n, n
		l.rungs[class] = n
		l.filled[class/64] |= 1 << (class % 64)
		return
	}
	n.next, n.prev = first, first.prev
	n.prev.next, n.next.prev = n, n
}

// remove takes n from the ladder if it is on it.
func (l *ladder[T]) remove(n *node[T]) {
	if !n.on() {
		return
	}
	if n.next == n {
		l.rungs[n.class] = nil
		l.filled[n.class/64] &^= 1 << (n.class % 64)
	} else {
		n.next.prev, n.prev.next = n.prev, n.next
		if l.rungs[n.class] == n {
			l.rungs[n.class] = n.next
		}
	}
	n.next, n.prev = nil, nil
}

// on reports whether n is on a ladder.
func (n *node[T]) on() bool { return n.next != nil }

// lowest returns the first of the lowest class, or nil.
func (l *ladder[T]) lowest() *node[T] {
	for i, word := range l.filled {
		if word != 0 {
			return l.rungs[i*64+bits.TrailingZeros64(word)]
		}
	}
	return nil
}

// after returns what follows n, or nil.
func (l *ladder[T]) after(n *node[T]) *node[T] {
	if n.next != l.rungs[n.class] {
		return n.next
	}
	class := n.class + 1
	for i := class / 64; i < len(l.filled); i++ {
		word := l.filled[i]
		if i == class/64 {
			word &^= 1<<(class%64) - 1
		}
		if word != 0 {
			return l.rungs[i*64+bits.TrailingZeros64(word)]
		}
	}
	return nil
}

// highest returns the first of the highest class, or nil.
func (l *ladder[T]) highest() *node[T] {
	for i := len(l.filled) - 1; i >= 0; i-- {
		if word := l.filled[i]; word != 0 {
			return l.rungs[i*64+63-bits.LeadingZeros64(word)]
		}
	}
	return nil
}

// all returns everything on l.
func (l *ladder[T]) all() (of []*T) {
	for n := l.lowest(); n != nil; n = l.after(n) {
		of = append(of, n.of)
	}
	return of
}
