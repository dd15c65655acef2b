// SPDX-License-Identifier: Apache-2.0

package door

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffersAreCountedWhileTheyAreOut(t *testing.T) {
	w, _ := ways()
	b := newBuffers(w)
	for _, tt := range []struct{ length, counted int }{
		{0, 4096}, {1025, 4096}, {4096, 4096}, {4097, 8192}, {16384, 16384}, {16<<20 - 1, 16 << 20}, {16<<20 + 1, 16<<20 + 1},
	} {
		for range 3 { // one that is new, and then perhaps the same again
			buf := b.Get(tt.length)
			require.Len(t, *buf, tt.length)
			require.Equal(t, tt.counted, cap(*buf))
			require.EqualValues(t, tt.counted, w.total.Load())
			*buf = (*buf)[:tt.length/2]
			b.Put(buf)
			require.Zero(t, w.total.Load())
		}
	}
}

func TestOnlyWhatIsOutIsTakenBack(t *testing.T) {
	w, _ := ways()
	b := newBuffers(w)
	foreign := make([]byte, 4096)
	b.Put(&foreign)
	require.Zero(t, w.total.Load())

	buf := b.Get(5000)
	b.Put(buf)
	b.Put(buf)
	require.Zero(t, w.total.Load())
	one, two := b.Get(5000), b.Get(5000)
	require.NotSame(t, &(*one)[0], &(*two)[0], "nobody is given what another has")
}

// grpc leaves what a canceled call had not read to the garbage collector.
func TestABufferThatIsNeverPutBackIsTakenOffOnceItIsGarbage(t *testing.T) {
	w, p := ways()
	b := newBuffers(w)
	for range 3 {
		out := make([]*[]byte, 100)
		for i := range out {
			out[i] = b.Get(16384)
		}
		require.EqualValues(t, 100*16384, w.total.Load())
		runtime.KeepAlive(out)
		p.settle(t)
	}
	for i := range b.loans {
		b.loans[i].Lock()
		require.Empty(t, b.loans[i].at)
		b.loans[i].Unlock()
	}
	runtime.KeepAlive(b)
}
