// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"runtime"
	"sync"
)

// notice is an object that nobody keeps: the next collection finds it dead and runs its cleanup, which
// makes another.
type notice struct {
	mu      sync.Mutex
	f       func()
	next    runtime.Cleanup
	stopped bool
}

// OnGC calls f shortly after each garbage collection, one call at a time, until stop is called. After stop has
// returned, f is neither running nor called again. F runs on a goroutine of the runtime's that other cleanups wait
// for, so it must be short; it must not call stop.
//
// A collection that begins before the last one was noticed may go unnoticed.
func OnGC(f func()) (stop func()) {
	n := &notice{f: f}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arm()
	return n.stop
}

// arm makes the object that dies. It holds a pointer so that it is not put into one slot with other small objects,
// which would keep it alive as long as any of them.
func (n *notice) arm() {
	n.next = runtime.AddCleanup(new(struct{ _ *notice }), (*notice).fire, n)
}

// fire arms first: what f allocates may start the next collection.
func (n *notice) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.arm()
	n.f()
}

func (n *notice) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	n.next.Stop()
}
