// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

// lookEvery is how often whoever waits for room looks whether there is some, and whether somebody holds it up.
// It asks instead of being told, because bytes also come back when the garbage collector finds them.
const lookEvery = 10 * time.Millisecond

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// ownShare is the part of what may be on its way in that small bodies have in any case, and so have large ones:
// one in so many bytes. Large are those of more than [heavyFrom].
const ownShare = 4

// bodies are those being read. The zero value is ready; the methods are safe for concurrent use.
//
// A body that finds no room waits for it while those that are slow are cut off: they would hold their bytes for
// as long as they like, and get them for nothing. Small bodies and large ones each have some room of their own,
// so that neither need to wait for the other, which may come no faster than it must.
type bodies struct {
	mu      sync.Mutex
	reading map[*body]struct{}
	looked  time.Time    // when the slow were last looked for
	small   atomic.Int64 // bytes
	large   atomic.Int64 // bytes
}

// like returns the bytes of the bodies that are alike to one of that size.
func (bs *bodies) like(size int64) *atomic.Int64 {
	if size > heavyFrom {
		return &bs.large
	}
	return &bs.small
}

// resize counts a body as being of another size.
func (bs *bodies) resize(from, to int64) {
	bs.like(from).Add(-from)
	bs.like(to).Add(to)
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

// over reports whether b may not grow to a size for now, with what was observed and what is allowed. What it
// holds itself is never in its way, so that of those that wait for each other the one that grew last can go on.
func (b *body) over(size int64) (observed, limit int64, over bool) {
	held := int64(cap(b.data))
	if observed, limit, over = b.peer.over(held); !over {
		return observed, limit, false
	}
	line := &b.door.bodies
	like := line.like(size)
	alike := like.Load()
	if like == line.like(held) {
		alike -= held
	}
	return observed, limit, alike >= b.door.wire.limit()/ownShare
}

// room returns once b may grow to a size. It fails if there is no room after all that b may wait, which is as
// long as a batch may wait in line, or once ctx has ended. An address that has more than its share while others
// are here does not wait: it would keep from them what they wait for.
func (b *body) room(ctx context.Context, size int64) error {
	observed, limit, over := b.over(size)
	if !over {
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
	for over {
		b.door.bodies.cutOff()
		if time.Since(start) >= b.patience || b.peer.contended() && limit < b.door.wire.limit()/2 {
			return b.door.Refuse(ctx, b.signal, admission.MemoryContended, observed, limit)
		}
		select {
		case <-ctx.Done():
			return b.door.Refuse(ctx, b.signal, admission.Canceled, 0, 0)
		case <-look.C:
		}
		observed, limit, over = b.over(size)
	}
	return nil
}
