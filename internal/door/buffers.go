// SPDX-License-Identifier: Apache-2.0

package door

import (
	"math/bits"
	"runtime"
	"sync"
	"unsafe"

	"google.golang.org/grpc/mem"
)

const (
	smallestBuffer = 12 // 4 KiB; grpc itself asks for nothing of 1 KiB or less
	largestBuffer  = 24 // 16 MiB; what is larger is not kept
)

// buffers is the pool from which a server takes the memory of what arrives: frames, what is decompressed, and
// messages in one piece. It counts what is out by the buffers' capacity, which is up to twice what was asked
// for. It gives them as they are, not zeroed: everybody who asks a server's pool writes before reading.
//
// Whatever grpc never puts back, such as the frames of calls that were canceled before they were read, is
// taken off when the garbage collector finds it. Frames of 1 KiB and less do not come from the pool and are
// counted with the message that they belong to, once that is whole.
type buffers struct {
	wire  *wire
	tiers [largestBuffer - smallestBuffer + 1]sync.Pool // of *[]byte
	loans [16]loans
}

// loans are the buffers that exist, by the address of their memory, which keeps none of them alive.
type loans struct {
	sync.Mutex
	at map[uintptr]*loan
}

// loan is one buffer.
type loan struct {
	address uintptr
	size    int64
	out     bool
}

var _ mem.BufferPool = (*buffers)(nil)

func newBuffers(w *wire) *buffers {
	b := &buffers{wire: w}
	for i := range b.loans {
		b.loans[i].at = map[uintptr]*loan{}
	}
	return b
}

// Get implements mem.BufferPool.
func (b *buffers) Get(length int) *[]byte {
	tier := max(bits.Len(uint(max(1, length)-1)), smallestBuffer)
	if tier <= largestBuffer {
		if buf, ok := b.tiers[tier-smallestBuffer].Get().(*[]byte); ok {
			b.lend(buf)
			*buf = (*buf)[:length]
			return buf
		}
	}
	size := length
	if tier <= largestBuffer {
		size = 1 << tier
	}
	buf := make([]byte, length, size)
	l := &loan{address: address(buf), size: int64(size), out: true}
	of := b.of(l.address)
	of.Lock()
	of.at[l.address] = l // that of an earlier buffer there is about to be collected
	of.Unlock()
	runtime.AddCleanup(unsafe.SliceData(buf), b.collected, l)
	b.wire.add(l.size)
	return &buf
}

// lend counts a buffer as out that was here.
func (b *buffers) lend(buf *[]byte) {
	at := address(*buf)
	of := b.of(at)
	of.Lock()
	l := of.at[at]
	l.out = true
	of.Unlock()
	b.wire.add(l.size)
}

// Put implements mem.BufferPool. What did not come from here, or is here already, is left alone.
func (b *buffers) Put(buf *[]byte) {
	at := address(*buf)
	of := b.of(at)
	of.Lock()
	l := of.at[at]
	ours := l != nil && l.out && l.size == int64(cap(*buf))
	if ours {
		l.out = false
	}
	of.Unlock()
	if !ours {
		return
	}
	b.wire.add(-l.size)
	if tier := bits.Len(uint(l.size)) - 1; tier <= largestBuffer {
		b.tiers[tier-smallestBuffer].Put(buf)
	}
}

// collected takes a buffer off that the garbage collector has found.
func (b *buffers) collected(l *loan) {
	of := b.of(l.address)
	of.Lock()
	if of.at[l.address] == l {
		delete(of.at, l.address)
	}
	out := l.out
	of.Unlock()
	if out {
		b.wire.add(-l.size)
	}
}

func (b *buffers) of(address uintptr) *loans {
	return &b.loans[address>>smallestBuffer%uintptr(len(b.loans))]
}

func address(buf []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(buf))) }
