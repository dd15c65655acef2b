// SPDX-License-Identifier: Apache-2.0

package pressure

import "math"

// Carrier is what ended leases left alive of one owner. It is embedded by value where the owner's other figures
// are. The books that it is used with guard it; it must not be copied, and must not be forgotten while
// something that was left to it is not gone.
type Carrier struct {
	moved   func(delta int64)
	carried int64 // bytes: what the owner was told of
	place   int   // among those that the books look at, from 1; 0: there is nothing to look at

	// Bytes of the leases that ended before the last collection but one, whose data one found alive; between
	// these two, whose verdict is awaited; and since the last.
	old, prev, fresh int64
	// Bytes of the same leases whose data is gone: of the old ones since the last verdict, and of the others.
	oldGone, prevGone, freshGone int64
	expected                     int64 // old bytes that are believed to be dead, although nobody has seen it

	// Both are the owner's own. (Simulated: by the same figures for everybody, 78 MiB were alive of an owner with a
	// ceiling of 64 whose exporter was dead, because its neighbour's was not; and the neighbour was refused one batch
	// in twenty at first.)
	mortal float64 // share of what ends that the next collection finds dead
	drain  float64 // old bytes that die per second
}

// Init makes moved what is called when the bytes that c carries change by delta for any other reason than
// [Books.End]. It is called with the books' lock held: it must be short and must not call the books. Changes
// commute, so it may be called before the caller of End has applied what End returned: their sum is what c
// carries, but on the way it may be below zero. Without it nobody is told.
func (c *Carrier) Init(moved func(delta int64)) { c.moved = moved }

// Left is what one ended lease left to one owner. The zero value is ready for [Books.End] and [Books.Gone], in
// either order; only the first call of each does anything. It must not be copied.
type Left struct {
	carrier *Carrier // nil unless it is counted there
	bytes   int64
	epoch   uint64 // when it ended
	gone    bool
}

// End moves n bytes to c because the lease that covered them ended while their data may live on. It returns by
// how much that changed what c carries, which is not told to c as well, so that the caller can move the bytes from
// held to carried at once. If the data is gone already, that is 0.
func (b *Books) End(l *Left, c *Carrier, n int64) (delta int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.carrier != nil || l.gone || n <= 0 {
		return 0
	}
	l.carrier, l.bytes, l.epoch = c, n, b.mu.epoch
	c.fresh += n
	b.mu.left += n
	return b.countLocked(c)
}

// Gone counts that the data of l is no more. It may be called from a runtime cleanup.
func (b *Books) Gone(l *Left) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, n := l.carrier, l.bytes
	l.carrier, l.gone = nil, true
	switch {
	case c == nil:
		return
	case l.epoch == b.mu.epoch: // by a cleanup that came before the notice of its collection
		c.fresh -= n
		c.freshGone += n
	case l.epoch == b.mu.epoch-1 && b.mu.unsettled:
		c.prev -= n
		c.prevGone += n
	default:
		c.old -= n
		c.oldGone += n
		c.expected = max(0, c.expected-n)
		b.mu.old -= n
		b.mu.oldGone += n
	}
	b.mu.left -= n
	b.tellLocked(c)
}

// Carried returns the bytes that c carries now, which is what it was told of in sum.
func (b *Books) Carried(c *Carrier) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.carried
}

// believed returns the bytes that c is believed to have alive. Of the old ones it is never less than half, since
// a drain that has stopped shows only at the next collection. It is rounded up, and nothing is 0.
func (c *Carrier) believed() int64 {
	return c.old - min(c.expected, c.old/2) + int64(math.Ceil((1-c.mortal)*float64(c.prev+c.fresh)))
}

// expect works out how many old bytes are dead by now that nobody has seen dying, in so many seconds since the
// collection that the last verdict was about.
func (c *Carrier) expect(seconds float64) {
	c.expected = max(0, int64(c.drain*seconds)-c.oldGone)
}

// settle takes the verdict of a collection that came so many seconds after the one before. Few bytes prove
// little, so that of all carriers counts as well, as if it were about telling bytes more of this one's.
func (c *Carrier) settle(seconds, mortalOfAll float64) {
	if ended := c.prev + c.prevGone; ended > 0 {
		c.mortal = cautious(c.mortal, (float64(c.prevGone)+telling*mortalOfAll)/float64(ended+telling))
	}
	if seconds > 0 {
		weight := 1 - math.Exp(-seconds/drainMemory.Seconds())
		c.drain += weight * (float64(c.oldGone)/seconds - c.drain)
	}
	c.old += c.prev
	c.prev, c.prevGone, c.oldGone = 0, 0, 0
}

// cautious returns the share of dead to go by after a collection that found this one. Bad news is believed at once and
// good news by halves.
func cautious(mortal, found float64) float64 { return min(found, (mortal+found)/2) }
