// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failer is a test or a check of rapid's.
type failer interface {
	require.TestingT
	Helper()
}

// fate is what became of one batch.
type fate struct {
	calls atomic.Int32
	done  chan struct{}
}

// fateOf follows a batch that must be one that can be followed.
func fateOf(t failer, w *Watch) *fate {
	t.Helper()
	require.NotNil(t, w, "a batch with records is followed")
	f := &fate{done: make(chan struct{}, 2)}
	w.Then(f.gone)
	return f
}

func (f *fate) gone() {
	f.calls.Add(1)
	f.done <- struct{}{}
}

// alive requires that two collections leave the batch alone.
func (f *fate) alive(t failer, why string) {
	t.Helper()
	collect(t)
	require.Zero(t, f.calls.Load(), "told to be gone: %s", why)
}

// over requires that two collections take the batch, and tell so once.
func (f *fate) over(t failer, why string) {
	t.Helper()
	collect(t)
	require.True(t, within(f.done), "still not told to be gone: %s", why)
	collect(t)
	require.EqualValues(t, 1, f.calls.Load(), why)
}

// collect runs two collections. After each it waits for the cleanup of an object of
// its own, so that those of the test have had their turn too.
func collect(t failer) {
	t.Helper()
	for range 2 {
		done := make(chan struct{}, 1)
		dropOne(done)
		runtime.GC()
		require.True(t, within(done), "the runtime does not run cleanups")
	}
}

//go:noinline
func dropOne(done chan struct{}) {
	runtime.AddCleanup(new([4]*byte), func(done chan struct{}) { done <- struct{}{} }, done)
}

// within says whether something comes out of c, into the given place if there is
// one, before a test that waits for it is beyond hope.
func within[T any](c <-chan T, into ...*T) bool {
	select {
	case got := <-c:
		for _, p := range into {
			*p = got
		}
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}
