// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file run on the real heap. Only they start collections: one that begins while another is being
// noticed goes unnoticed itself.
func onlyForcedCollections(t *testing.T) {
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

func TestEveryCollectionIsNoticed(t *testing.T) {
	onlyForcedCollections(t)
	noticed := make(chan struct{}, 100)
	defer OnGC(func() { noticed <- struct{}{} })()
	for range 5 {
		runtime.GC()
		<-noticed
	}
}

func TestNothingIsNoticedOnceStopped(t *testing.T) {
	onlyForcedCollections(t)
	noticed := make(chan struct{}, 100)
	var calls atomic.Int64
	stop := OnGC(func() {
		calls.Add(1)
		noticed <- struct{}{}
	})
	runtime.GC()
	<-noticed
	stop()
	stop()
	before := calls.Load()
	defer OnGC(func() { noticed <- struct{}{} })()
	for range 5 {
		runtime.GC()
		<-noticed // by the other
	}
	require.Equal(t, before, calls.Load())
}

func TestANoticeThatComesWhileItIsStopped(t *testing.T) {
	n := &notice{f: func() { t.Error("called") }}
	n.arm()
	n.stop()
	n.fire() // its cleanup was queued before
}

func TestWhatANoticeKeptIsFreedOnceStopped(t *testing.T) {
	onlyForcedCollections(t)
	freed := make(chan struct{})
	kept := new([1000]byte)
	runtime.AddCleanup(kept, func(freed chan struct{}) { close(freed) }, freed)
	OnGC(func() { kept[0]++ })()
	runtime.GC()
	<-freed
}

// record is a batch's last record: what a lease leaves is gone when it is.
type record struct{ data [64 << 10]byte }

func TestBooksFollowTheRealHeap(t *testing.T) {
	onlyForcedCollections(t)
	const n, size = 200, int64(len(record{}.data))
	books := NewBooks(time.Now(), Settings{})
	books.Resize(Size{Pool: Unbounded, Budget: Unbounded, Critical: Unbounded})
	var carrier Carrier
	var carried atomic.Int64
	carrier.Init(func(delta int64) { carried.Add(delta) })

	noticed := make(chan Runtime, 1000)
	var reader RuntimeReader
	defer OnGC(func() {
		r := reader.Read()
		books.Noticed(time.Now(), r, 0, 0)
		noticed <- r
	})()
	gone := make(chan struct{}, n)
	var queue []*record
	for i := range n {
		r, left := &record{}, &Left{}
		runtime.AddCleanup(r, func(left *Left) {
			books.Gone(left)
			gone <- struct{}{}
		}, left)
		if i%2 == 0 {
			queue = append(queue, r)
		}
		carried.Add(books.End(left, &carrier, size))
	}
	// collect waits until a collection has been noticed, n more are gone and the verdict is in.
	collect := func(n int) Runtime {
		runtime.GC()
		r := <-noticed
		for range n {
			<-gone
		}
		books.Tick(time.Now().Add(verdictAfter), 0)
		return r
	}
	r := collect(n / 2)
	require.Equal(t, n/2*size, carried.Load())
	require.Equal(t, n/2*size, books.Stats().Carried)
	require.GreaterOrEqual(t, r.Live, n/2*size)
	require.Less(t, books.Stats().Unowned, r.Live-n/2*size+size)
	runtime.KeepAlive(queue)

	queue = nil
	collect(n / 2)
	require.Zero(t, carried.Load())
	require.Zero(t, books.Stats().Carried)
}
