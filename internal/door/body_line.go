// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

// lookEvery is how often whoever waits for room looks whether there is some, and whether somebody holds it up.
// It asks instead of being told, because bytes also come back when the garbage collector finds them.
const lookEvery = 10 * time.Millisecond

// largeFrom is the size, in bytes, from which a body is a large one.
const largeFrom = 256 << 10

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// bodies are those being read. The zero value is ready; the methods are safe for concurrent use.
//
// Half of what may be on its way in is for large bodies, of more than [largeFrom], and half for the others, so that
// these need not wait for one that comes no faster than it must. What a body holds itself is never in its way:
// any size gets through, and of those that wait for each other the one that grew last can go on. So the bound is
// exceeded by one large body at most.
//
// A body that finds no room waits for it, and those that are slow are cut off for it: they would hold their bytes
// for as long as they like, and get them for nothing.
type bodies struct {
	mu      sync.Mutex
	reading map[*body]struct{}
	looked  time.Time // when the slow were last looked for
	small   int64     // bytes
	large   int64     // bytes
}

// enter says that b is being read.
func (bs *bodies) enter(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.reading == nil {
		bs.reading = map[*body]struct{}{}
	}
	bs.reading[b] = struct{}{}
}

// leave says that b is no longer being read. Whether it was cut off does not change after that.
func (bs *bodies) leave(b *body) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.reading, b)
}

// cutOff ends the reading of all bodies that are slow. Where a connection has no deadlines it ends when the
// next bytes come.
func (bs *bodies) cutOff() {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	now := time.Now()
	if now.Sub(bs.looked) < lookEvery {
		return
	}
	bs.looked = now
	for b := range bs.reading {
		if now.Sub(b.start) > time.Duration(b.allowed.Load()) {
			b.late.Store(true)
			_ = b.conn.SetReadDeadline(longAgo)
			delete(bs.reading, b)
		}
	}
}

// like returns the bytes of the bodies that are alike to one of that size.
func (bs *bodies) like(size int64) *int64 {
	if size > largeFrom {
		return &bs.large
	}
	return &bs.small
}

// resize counts b as being of a size, unless it would grow and there is no room for that.
func (bs *bodies) resize(b *body, size int64) (ok bool) {
	held := int64(cap(b.data))
	bs.mu.Lock()
	defer bs.mu.Unlock()
	from, to := bs.like(held), bs.like(size)
	*from -= held
	if size > held {
		all := b.door.wire.limit()
		others := b.door.wire.total.Load() - held - bs.small - bs.large
		if *to >= all/2 || others >= all {
			*from += held
			return false
		}
	}
	*to += size
	b.peer.add(size - held)
	return true
}

// count counts b as being of a size, whether or not there is room for that.
func (bs *bodies) count(b *body, size int64) {
	held := int64(cap(b.data))
	bs.mu.Lock()
	defer bs.mu.Unlock()
	*bs.like(held) -= held
	*bs.like(size) += size
	b.peer.add(size - held)
}

// greedy reports whether b must not wait, since it would keep from others what they wait for: its address has,
// beside it, more than a quarter of what may be on its way in, and is not the only one.
func (b *body) greedy() bool {
	held := int64(cap(b.data))
	return held > 0 && b.peer.contended() && b.peer.bytes.Load()-held >= b.door.wire.limit()/4
}

// room returns once b is counted as being of a larger size. It fails if there is no room after all that b may wait,
// which is as long as a batch may wait in line, or once ctx has ended.
func (b *body) room(ctx context.Context, size int64) error {
	line := &b.door.bodies
	if !b.greedy() && line.resize(b, size) {
		return nil
	}
	if b.door.Observe {
		b.door.Refuse(ctx, b.signal, admission.MemoryContended, size, b.door.wire.limit())
		line.count(b, size)
		return nil
	}
	start, pace := time.Now(), b.allowed.Swap(math.MaxInt64)
	defer func() { // the time is not held against its pace
		waited := time.Since(start)
		b.patience -= waited
		b.allowed.Store(pace + int64(waited))
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		line.cutOff()
		if b.greedy() || time.Since(start) >= b.patience {
			return b.door.Refuse(ctx, b.signal, admission.MemoryContended, size, b.door.wire.limit())
		}
		select {
		case <-ctx.Done():
			return b.door.Refuse(ctx, b.signal, admission.Canceled, 0, 0)
		case <-look.C:
		}
		if line.resize(b, size) {
			return nil
		}
	}
}
