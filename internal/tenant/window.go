// SPDX-License-Identifier: Apache-2.0

package tenant

import "time"

// steps is into how many a window is divided. Counting reaches back over the whole window and at most one
// step further, so that what happened within one window always counts together.
const steps = 16

// window counts batches, and breaches among them, over the last while. The zero value has counted nothing.
type window struct {
	length time.Duration
	at     int64 // the step that counts now
	next   int64 // when the next one begins
	counts [steps + 1]struct{ batches, breaches uint32 }
}

func (w *window) step() int64 { return max(1, int64(w.length)/steps) }

// add counts a batch that ended now. If the length changes it starts anew.
func (w *window) add(length time.Duration, now int64, breach bool) {
	if w.length != length {
		*w = window{length: length}
	}
	w.roll(now)
	c := &w.counts[w.at%int64(len(w.counts))]
	c.batches++
	if breach {
		c.breaches++
	}
}

// roll empties the steps that are over. A clock that goes backwards counts in the latest.
func (w *window) roll(now int64) {
	if now < w.next { // as almost always
		return
	}
	at := max(0, now) / w.step()
	if at-w.at >= int64(len(w.counts)) {
		clear(w.counts[:])
		w.at = at
	}
	for w.at < at {
		w.at++
		w.counts[w.at%int64(len(w.counts))] = struct{ batches, breaches uint32 }{}
	}
	w.next = (w.at + 1) * w.step()
}

func (w *window) batches() (n int64) {
	for i := range w.counts {
		n += int64(w.counts[i].batches)
	}
	return n
}

func (w *window) breaches() (n int64) {
	for i := range w.counts {
		n += int64(w.counts[i].breaches)
	}
	return n
}

// breached reports whether there was a breach within the window.
func (w *window) breached(now int64) bool {
	if w.breaches() == 0 {
		return false
	}
	w.roll(now)
	return w.breaches() > 0
}
