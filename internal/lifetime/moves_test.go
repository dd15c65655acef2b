// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// eachSignal runs a test for every kind of batch.
func eachSignal(t *testing.T, test func(t *testing.T, s tester)) {
	t.Helper()
	signals := []tester{tracesSignal, logsSignal, profilesSignal}
	for _, s := range metricsSignals {
		signals = append(signals, s)
	}
	for _, s := range signals {
		t.Run(s.name(), func(t *testing.T) { test(t, s) })
	}
}

// tester hides the type of a signal's batches from tables.
type tester interface {
	name() string
	held(t *testing.T, by way) (f *fate, drop func())
	watchAndDrop(t *testing.T) *Watch
}

func (s signal[T]) name() string { return s.kind }

// way is how a batch is held by who got it.
type way int

const (
	kept way = iota
	moved
	appended
	appendedToOthers
	onlyLastRecordKept
	lastRecordRemoved
	cloned
	encoded
)

// held follows a batch and passes it on in some way. Until drop, whoever got it
// holds what it got.
func (s signal[T]) held(t *testing.T, by way) (f *fate, drop func()) {
	batch := s.batch(t)
	f = fateOf(t, s.watch(batch))
	got := new(any)
	switch to := s.empty(); by {
	case kept:
		*got = batch
	case moved:
		s.move(batch, to)
		*got = to
	case appended:
		s.appendTo(batch, to)
		*got = to
	case appendedToOthers:
		s.grow(to)
		s.appendTo(batch, to)
		s.grow(to)
		*got = to
	case onlyLastRecordKept:
		s.remove(batch, func(i int) bool { return i < size-1 })
		*got = batch
	case lastRecordRemoved:
		s.remove(batch, func(i int) bool { return i == size-1 })
		require.Equal(t, size-1, s.count(batch))
		*got = batch
	case cloned:
		s.copyTo(batch, to)
		*got = to
	case encoded:
		wire, err := s.marshal(batch)
		require.NoError(t, err)
		*got = wire
	}
	return f, func() {
		runtime.KeepAlive(*got) // or the collector would take what nobody looks at any more
		*got = nil
	}
}

func TestBatchIsThereAsLongAsWhoGotItsRecordsHoldsThem(t *testing.T) {
	for name, by := range map[string]way{
		"kept": kept, "moved": moved, "appended": appended, "appended to others": appendedToOthers,
		"only its last record kept": onlyLastRecordKept,
	} {
		t.Run(name, func(t *testing.T) {
			eachSignal(t, func(t *testing.T, s tester) {
				f, drop := s.held(t, by)
				f.alive(t, "it is held")
				f.alive(t, "it is held for long")
				drop()
				f.over(t, "it was dropped")
			})
		})
	}
}

// TestWhatCannotBeFollowedCountsAsGone is the limit of the promise: what is left is
// nobody's.
func TestWhatCannotBeFollowedCountsAsGone(t *testing.T) {
	for name, by := range map[string]way{
		"last record removed": lastRecordRemoved, "cloned, the original dropped": cloned, "encoded": encoded,
	} {
		t.Run(name, func(t *testing.T) {
			eachSignal(t, func(t *testing.T, s tester) {
				f, drop := s.held(t, by)
				f.over(t, name)
				drop()
			})
		})
	}
}

//go:noinline
func (s signal[T]) watchAndDrop(t *testing.T) *Watch { return s.watch(s.batch(t)) }

func TestDataThatDiedBeforeThenIsGoneAtOnce(t *testing.T) {
	eachSignal(t, func(t *testing.T, s tester) {
		w := s.watchAndDrop(t)
		require.NotNil(t, w)
		collect(t)
		called := 0
		w.Then(func() { called++ })
		require.Equal(t, 1, called)
	})
}

func TestDataDroppedAtOnceIsGoneAtTheNextCollection(t *testing.T) {
	eachSignal(t, func(t *testing.T, s tester) {
		f := fateOf(t, s.watchAndDrop(t))
		f.over(t, "dropped at once")
	})
}

// TestEveryBatchIsToldOnceWhileTheCollectorRuns lets data die at every moment
// around Then.
func TestEveryBatchIsToldOnceWhileTheCollectorRuns(t *testing.T) {
	const workers, batches = 4, 500
	told := make(chan struct{}, 2*workers*batches)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range batches {
				td := ptrace.NewTraces()
				tracesSignal.grow(td)
				w := Traces(td)
				if i%50 == 0 {
					runtime.GC()
				}
				w.Then(func() { told <- struct{}{} })
			}
		})
	}
	all.Wait()
	collect(t)
	for i := range workers * batches {
		require.True(t, within(told), "only %d batches were told to be gone", i)
	}
	collect(t)
	require.Empty(t, told)
}
