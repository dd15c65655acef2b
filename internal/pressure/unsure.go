// SPDX-License-Identifier: Apache-2.0

package pressure

import "runtime"

// This file is about data of which nobody knows whether a collection found it alive: what was being decoded at its end,
// and what ended while it marked. On a processor that collects half of the time that happens to every other large
// batch; taken for nobody's, it kept everybody out until the next collection.

// droppedFrom is the size, in bytes, from which data that ends is worth following.
const droppedFrom = 1 << 20

// Dropped tells that n bytes which were known to be on the heap are garbage now.
func (b *Books) Dropped(n int64) {
	if n < droppedFrom {
		return
	}
	d := &dropped{books: b, bytes: n}
	b.mu.Lock()
	d.epoch = b.mu.epoch
	b.mu.dropped += n
	b.mu.Unlock()
	runtime.AddCleanup(new(struct{ _ *dropped }), (*dropped).seen, d)
}

// dropped is such data. An object that is garbage from the same moment on tells by its end that a collection began later.
type dropped struct {
	books *Books
	bytes int64
	epoch uint64 // when it became garbage
}

// seen is told once a collection has found it dead.
func (d *dropped) seen() {
	b := d.books
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case d.epoch == b.mu.epoch: // before the notice of that collection
		b.mu.dropped -= d.bytes
	case d.epoch == b.mu.epoch-1 && b.mu.unsettled:
		b.mu.unsure -= d.bytes
	}
}

// unownedLocked returns the bytes that are nobody's by the verdict of a collection which found at most so many. The
// figure before stands as long as it may.
func (b *Books) unownedLocked(most int64) int64 {
	return max(0, min(max(b.mu.unowned, most-b.mu.unsure), most))
}
