// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// margin is the promised one. What it is needed for is tiny objects: nobody can
// say which of them share a block. Below it, one block more or less is no error.
const margin = 0.10

// TestFootprintMatchesLiveHeap is the guard against an upgrade of pdata or Go
// that changes what a decoded batch takes.
func TestFootprintMatchesLiveHeap(t *testing.T) {
	compareHeap(t, batch.heap)
}

// TestFootprintMatchesLiveHeapOfJSON: the structs and slices are those that
// protobuf gives, but the JSON decoder's own short-lived strings come between the
// tiny objects that stay, so that each of these keeps a block alone. Footprint
// does not say so; here it is told.
func TestFootprintMatchesLiveHeapOfJSON(t *testing.T) {
	packed := tinyAlone()
	defer packed()
	compareHeap(t, batch.jsonHeap)
}

func compareHeap(t *testing.T, heap func(batch, testing.TB) (encoded int, measured, said int64)) {
	t.Logf("%-40s %10s %10s %10s %6s %7s", "batch", "encoded", "heap", "footprint", "ratio", "error")
	for _, s := range corpus() {
		encoded, measured, said := heap(s, t)
		off := float64(said)/float64(measured) - 1
		t.Logf("%-40s %10d %10d %10d %6.1f %+6.1f%%", s.name, encoded, measured, said, float64(measured)/float64(max(encoded, 1)), 100*off)
		if math.Abs(off) > margin && math.Abs(float64(said-measured)) > 16 {
			t.Errorf("%s: footprint %d, live heap %d: off by %+.1f%%", s.name, said, measured, 100*off)
		}
	}
}

// heapOf decodes so many copies of a batch that the live heap grows by at least
// enough bytes, and returns the growth per copy beside what weigh says of one.
func heapOf[T any](t testing.TB, encoded []byte, decode func([]byte) (T, error), weigh func(T) int64, enough int) (measured, said int64) {
	first, err := decode(encoded)
	require.NoError(t, err)
	said = weigh(first)
	copies := make([]T, 2+enough/int(said))
	before := liveHeap()
	for i := range copies {
		copies[i], _ = decode(encoded)
	}
	grown := liveHeap() - before
	// What was alive before must still be, or its end counts against the copies.
	runtime.KeepAlive(encoded)
	runtime.KeepAlive(first)
	runtime.KeepAlive(copies)
	return grown / int64(len(copies)), said
}

// liveHeap collects twice, because sync.Pool lets go of its objects at the
// second collection only.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// tinyAlone makes the table say that every tiny object has a block to itself,
// until it is told to stop.
func tinyAlone() (stop func()) {
	was := tiny
	set := func(share func(n int) uint8) {
		for n := 1; n < len(tiny); n++ {
			tiny[n] = share(n)
		}
		*int32s, *int64s = *newArray(4, false), *newArray(8, false)
		short = shortStrings()
	}
	set(func(int) uint8 { return 16 })
	return func() { set(func(n int) uint8 { return was[n] }) }
}
