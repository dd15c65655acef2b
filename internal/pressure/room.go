// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"slices"
	"time"
)

// Size is what bounds the room, in bytes.
type Size struct {
	Pool     int64 // what may be held by configuration
	Budget   int64 // what [Budget] returns
	Critical int64 // what [CriticalLive] returns
}

// Resize sets what bounds the room. It must be called before anything else, and whenever a bound may have changed: at
// each collection, since what Go keeps beside the heap has, and when the memory limit is read again.
func (b *Books) Resize(s Size) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.size = s
}

// Room returns the bytes that may be held, carried, on the wire and waiting in all: no more than the pool, and no more
// than what Go can hold beside what is nobody's. It changes when a verdict is in and with [Books.Resize].
//
// Of it, reserved bytes must be left alone for now, without being taken from anybody's share or ceiling. They keep live
// heap from becoming critical if all that is believed to be dead turns out alive: were an exporter that empties its
// queue fast to stop just after a collection, everything that is let in until the next would stay. (Simulated with
// Go limited to 230 MiB: beside 64 MiB of a queue that stands still and 60 MiB that are nobody's, 234 MiB were alive
// before anybody knew, instead of 178.) They change with every lease that ends, so the caller reads them with each
// [Books.Tick].
func (b *Books) Room() (room, reserved int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.roomLocked()
}

func (b *Books) roomLocked() (room, reserved int64) {
	room = b.mu.size.room(b.mu.unowned)
	return room, max(0, room-max(0, b.mu.size.safe()-b.mu.unowned-b.doubtLocked()))
}

// doubtLocked returns the bytes that are believed to be dead and were not seen dying.
func (b *Books) doubtLocked() int64 { return b.mu.left - b.mu.carried }

// Attainable returns what the room can be at best: beside the least that was nobody's in the last ten minutes.
// What needs more can never fit, as far as anybody knows.
func (b *Books) Attainable() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.size.room(b.mu.lowest.lowest())
}

// safe is how much live heap must never be exceeded: short of critical by what may come between two ticks.
func (s Size) safe() int64 { return s.Critical - s.Critical/20 }

func (s Size) room(unowned int64) int64 {
	return max(0, min(s.Pool, s.Budget-unowned, s.safe()-unowned))
}

// minima are the lowest figures of this minute and of each of the ten before it.
type minima struct {
	slots  [11]int64
	minute int64
}

// fill makes n the figure of all minutes so far.
func (m *minima) fill(n int64) {
	for i := range m.slots {
		m.slots[i] = n
	}
}

// add takes the figure as of so long after the first minute began, and at least once a minute.
func (m *minima) add(after time.Duration, n int64) {
	const slots = int64(len(m.slots))
	for minute := int64(after / time.Minute); m.minute < minute; {
		m.minute++
		m.slots[m.minute%slots] = n
	}
	m.slots[m.minute%slots] = min(m.slots[m.minute%slots], n)
}

func (m *minima) lowest() int64 { return slices.Min(m.slots[:]) }
