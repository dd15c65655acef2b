// SPDX-License-Identifier: Apache-2.0

package pressure

import "time"

// This file says when the books want a collection that Go would not start by itself.

const (
	// patience is how old the last collection must be for a refusal to start another, so that nobody is
	// refused for longer because of memory that is free; eagerness is the same while collections find much dead.
	patience, eagerness = 2 * time.Second, time.Second / 2
)

// Refused tells of a batch refused for memory, whoever's memory and whichever limit. It returns whether the caller
// should start a collection, beside the path of the request and without waiting for it: [runtime.GC] in a
// goroutine. No other is asked for until the next notice.
//
// That is when the last one is 2 s old, and so old that collections like the cheaper of the last two take no more
// than their fraction of the processors. It is 0.5 s while the last one found a twentieth dead of what had been
// alive before.
func (b *Books) Refused(now time.Time) (collect bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.collecting || b.settings.GCFraction <= 0 {
		return false
	}
	wait := patience
	if b.mu.fruitful {
		wait = eagerness
	}
	last, cost := b.mu.last, b.mu.last.cost
	if before := b.mu.before.cost; before > 0 {
		// Go counts the time in which others had the processors. One collection held up by them must not keep
		// everybody refused for fifty times as long. (Behind an exporter that was back after an outage, beside
		// other work on both processors, one of 1.55 s instead of 0.08 did so for 39 s.)
		cost = min(cost, before)
	}
	apart := cost.Seconds() / float64(max(1, last.runtime.Procs)) / b.settings.GCFraction
	age := now.Sub(last.at)
	b.mu.collecting = age >= wait && age.Seconds() >= apart
	return b.mu.collecting
}

// doubtfulLocked reports whether a collection should be started because of what is believed to be dead: it keeps the
// room short, most of what is left is in use, and there is enough of it. No more than eight bytes are marked to be sure
// of one, which is what Go does itself where live heap is nearly critical.
func (b *Books) doubtfulLocked(held int64) bool {
	if b.mu.collecting || b.mu.unsettled || b.doubtLocked() <= b.mu.last.runtime.Live/8 {
		return false
	}
	room, reserved := b.roomLocked()
	free := room - reserved
	return reserved > 0 && held+b.mu.carried > free-free/4
}
