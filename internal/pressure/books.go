// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"sync"
	"time"
)

// Settings are what books are made with.
type Settings struct {
	GCFraction float64 // of the processors, that collections started for refusals may take; 0: none are
}

// Books know what leases left alive when they ended, by owner, and what is alive and nobody's. All methods are
// safe for concurrent use. Their lock is taken before any that a carrier's callback takes.
type Books struct {
	settings Settings
	began    time.Time

	mu struct {
		sync.Mutex
		carriers []*Carrier // those with anything in them
		left     int64      // bytes in all of them
		carried  int64      // of these, believed to be alive
		old      int64      // of these, proven alive; and those that are gone since the last verdict
		oldGone  int64
		mortal   float64 // share of all that ends that the next collection finds dead

		epoch        uint64     // collections noticed
		last, before collection // the last one and the one before
		unsettled    bool       // the verdict of the last one is awaited
		fruitful     bool       // that of the last one found a good part of the old bytes dead
		collecting   bool       // the caller was told to start one

		size    Size
		unowned int64 // bytes alive and nobody's, as of the last verdict

		dropped int64 // bytes that became garbage since the last collection
		unsure  int64 // bytes that the last collection may have found alive

		lowest minima // of unowned
	}
}

// collection is what is known of one of Go's garbage collections.
type collection struct {
	at      time.Time
	known   int64 // bytes on the heap for another reason than a carrier
	runtime Runtime
	cost    time.Duration // processor time
}

const (
	// verdictAfter is how long after the notice of a collection the cleanups of what it found dead may come.
	verdictAfter = 100 * time.Millisecond
	// telling is how many bytes must have ended between two collections to tell what share of them dies.
	telling = 2 << 20
	// drainMemory is the time constant of a drain's moving average. It is as long as a refusal waits for a
	// collection, so that this one tells most of a change.
	drainMemory = patience
)

// NewBooks returns empty books. It takes now for the time of the last collection.
func NewBooks(now time.Time, s Settings) *Books {
	b := &Books{settings: s, began: now}
	b.mu.last.at = now
	return b
}

// Noticed tells of the end of a collection: what Go says after it, and the bytes that are known to be on the
// heap now for another reason than that a lease left them (held by leases whose batch is decoded, on the wire,
// decoded and waiting in line), and those that may be there or not, since they are still being decoded. Its verdict is in 100 ms later, since cleanups of what it found dead
// may come that much later than the notice, or before it.
func (b *Books) Noticed(now time.Time, r Runtime, known, coming int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.unsettled {
		b.settleLocked()
	}
	next := collection{at: now, known: known, runtime: r}
	if last := b.mu.last.runtime; b.mu.epoch > 0 { // what the first took alone is not known
		next.cost = (r.GCTime - last.GCTime) / time.Duration(max(1, r.GCs-last.GCs)) // not all are noticed
	}
	b.mu.before, b.mu.last = b.mu.last, next
	for _, c := range b.mu.carriers {
		c.prev, c.fresh = c.fresh, 0
		c.prevGone, c.freshGone = c.freshGone, 0
	}
	b.mu.epoch++
	b.mu.unsettled, b.mu.collecting = true, false
	b.mu.unsure, b.mu.dropped = coming+b.mu.dropped, 0
	b.expectLocked(now)
}

// Tick tells that time has passed, about every 100 ms, and the bytes that are now held by leases, on the wire and
// waiting in line. It returns whether the caller should start a collection, as for [Books.Refused]: that is when room
// runs short because of what is believed to be dead. Its cost grows with the carriers that carry something.
func (b *Books) Tick(now time.Time, held int64) (collect bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.unsettled && now.Sub(b.mu.last.at) >= verdictAfter {
		b.settleLocked()
	}
	b.mu.lowest.add(now.Sub(b.began), b.mu.unowned)
	b.expectLocked(now)
	collect = b.doubtfulLocked(held)
	b.mu.collecting = b.mu.collecting || collect
	return collect
}

// settleLocked takes the verdict of the last collection. What everybody carries by it must be counted afterwards.
func (b *Books) settleLocked() {
	var alive, gone int64
	for _, c := range b.mu.carriers {
		alive += c.prev
		gone += c.prevGone
	}
	if alive+gone > telling {
		b.mu.mortal = cautious(b.mu.mortal, float64(gone)/float64(alive+gone))
	}
	b.mu.fruitful = b.mu.oldGone > 0 && b.mu.oldGone >= (b.mu.old+b.mu.oldGone)/20
	seconds := b.mu.last.at.Sub(b.mu.before.at).Seconds()
	for _, c := range b.mu.carriers {
		c.settle(seconds, b.mu.mortal)
	}
	b.mu.old += alive
	b.mu.oldGone = 0
	b.mu.unowned = b.unownedLocked(b.mu.last.runtime.Live - b.mu.last.known - b.mu.old)
	if b.mu.epoch == 1 { // before the first verdict nothing was known
		b.mu.lowest.fill(b.mu.unowned)
	}
	b.mu.unsettled = false
}

// expectLocked tells every owner what it carries by what is to be expected as of now. Until its verdict is in, what
// the last collection found dead is part of that.
func (b *Books) expectLocked(now time.Time) {
	since := b.mu.last.at
	if b.mu.unsettled {
		since = b.mu.before.at
	}
	for i := len(b.mu.carriers) - 1; i >= 0; i-- { // backwards, since the last takes the place of one that leaves
		c := b.mu.carriers[i]
		c.expect(now.Sub(since).Seconds())
		b.tellLocked(c)
	}
}

// tellLocked counts what c carries now and tells its owner of the change.
func (b *Books) tellLocked(c *Carrier) {
	if delta := b.countLocked(c); delta != 0 && c.moved != nil {
		c.moved(delta)
	}
}

// countLocked counts what c carries now and returns by how much that changed.
func (b *Books) countLocked(c *Carrier) (delta int64) {
	delta = c.believed() - c.carried
	c.carried += delta
	b.mu.carried += delta
	if in := c.old+c.prev+c.fresh+c.oldGone+c.prevGone+c.freshGone > 0; in != (c.place > 0) {
		b.toggleLocked(c)
	}
	return delta
}

// toggleLocked makes c one of those with anything in them, or one of them no longer.
func (b *Books) toggleLocked(c *Carrier) {
	if c.place == 0 {
		b.mu.carriers = append(b.mu.carriers, c)
		c.place = len(b.mu.carriers)
		return
	}
	last := len(b.mu.carriers) - 1
	moved := b.mu.carriers[last]
	b.mu.carriers[c.place-1], moved.place = moved, c.place
	b.mu.carriers[last] = nil
	b.mu.carriers, c.place, c.drain = b.mu.carriers[:last], 0, 0
}

// Stats are the books' figures at one moment.
type Stats struct {
	Carried  int64   // bytes, of all carriers
	Unowned  int64   // bytes alive that are nobody's, as of the last verdict
	Survival float64 // share of what ended lately that a collection found alive
	LastGC   time.Time
	GCTime   time.Duration // processor time that the last collection took
}

// Stats returns the figures of now.
func (b *Books) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{
		Carried: b.mu.carried, Unowned: b.mu.unowned, Survival: 1 - b.mu.mortal,
		LastGC: b.mu.last.at, GCTime: b.mu.last.cost,
	}
}
