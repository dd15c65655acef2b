// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

// lookEvery is how often whoever waits for room looks whether there is some, and whether somebody holds it up.
// It asks instead of being told, because bytes also come back when the garbage collector finds them.
const lookEvery = 10 * time.Millisecond

// largeFrom is the size, in bytes, from which a body is a large one.
const largeFrom = 256 << 10

// bodies are those in memory. The zero value is ready; the methods are safe for concurrent use.
//
// Half of what may be on its way in is for large bodies, of more than [largeFrom], and half for the others, so that
// these need not wait for one that comes no faster than it must. What a body holds itself is never in its way:
// any size gets through, and of those that wait for each other the one that grew last can go on. So the bound is
// exceeded by one large body at most.
//
// A body that finds no room waits for it, and those that are slow are cut off for it: they would hold their bytes
// for as long as they like, and get them for nothing.
type bodies struct {
	mu     sync.Mutex
	coming map[*pace]struct{} // those being read that may be slow
	looked time.Time          // when the slow were last looked for
	small  int64              // bytes
	large  int64              // bytes
}

// enter says that a body is being read that comes at a pace, if it has one.
func (bs *bodies) enter(p *pace) {
	if p == nil {
		return
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.coming == nil {
		bs.coming = map[*pace]struct{}{}
	}
	bs.coming[p] = struct{}{}
}

// leave says that it is no longer being read. Whether it was cut off does not change after that.
func (bs *bodies) leave(p *pace) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.coming, p)
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
	for p := range bs.coming {
		if p.slow(now) {
			p.cut.Store(true)
			_ = p.conn.SetReadDeadline(longAgo)
			delete(bs.coming, p)
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

// fits counts b as being of a larger size if there is room for that, or it may have that all the same.
func (b *body) fits(size int64) bool {
	if !b.greedy() && b.door.bodies.resize(b, size) {
		return true
	}
	if b.spare == nil || !b.spare(size) {
		return false
	}
	b.door.bodies.count(b, size)
	return true
}

// room returns once b is counted as being of a larger size. It fails if there is no room after all that b may wait,
// which is as long as a batch may wait in line, or once ctx has ended.
func (b *body) room(ctx context.Context, size int64) error {
	line := &b.door.bodies
	if b.fits(size) {
		return nil
	}
	if b.door.Observe {
		b.door.Refuse(ctx, b.signal, admission.MemoryContended, size, b.door.wire.limit())
		line.count(b, size)
		return nil
	}
	start, allowed := time.Now(), b.pace.pause()
	defer func() {
		waited := time.Since(start)
		b.patience -= waited
		b.pace.resume(allowed, waited)
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
		if b.fits(size) {
			return nil
		}
	}
}
