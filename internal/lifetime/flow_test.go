// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
)

// flow is batches on their way through a component, which hands them on one by one,
// each when the test lets it.
type flow struct {
	send    func() *fate // one batch of size records
	parts   chan int     // how many records are being handed on
	proceed chan struct{}
	stop    func(context.Context) error
}

type starter[T any] func(t *testing.T, b batching, push pusher[T]) stock[T]

func (s stocks[T]) flow(t *testing.T, start starter[T], b batching) *flow {
	f := &flow{parts: make(chan int), proceed: make(chan struct{})}
	c := start(t, b, func(_ context.Context, batch T) error {
		f.parts <- s.count(batch)
		<-f.proceed
		runtime.KeepAlive(batch)
		return nil
	})
	f.stop = c.Shutdown
	f.send = func() *fate {
		batch := s.batch(t)
		fate := fateOf(t, s.watch(batch))
		require.NoError(t, c.consume(t.Context(), batch))
		return fate
	}
	return f
}

// arrives waits for what is handed on next. The consumer holds it until let.
func (f *flow) arrives(t *testing.T, records int) {
	t.Helper()
	require.Equal(t, records, f.next(t))
}

func (f *flow) next(t *testing.T) int {
	t.Helper()
	var got int
	require.True(t, within(f.parts, &got), "nothing is handed on")
	return got
}

// let makes the consumer return.
func (f *flow) let() { f.proceed <- struct{}{} }

// shutdown starts to end the component and returns how to wait for that.
func (f *flow) shutdown(t *testing.T) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- f.stop(context.Background()) }()
	return func() {
		t.Helper()
		var err error
		require.True(t, within(done, &err), "the component does not end")
		require.NoError(t, err)
	}
}

// eachFlow runs a test for every component that keeps batches and every kind of
// batch it takes.
func eachFlow(t *testing.T, b batching, test func(*testing.T, *flow)) {
	t.Run("exporter", func(t *testing.T) { eachExporter(t, b, test) })
	t.Run("batch processor", func(t *testing.T) {
		processing(t, tracesStocks, b, test)
		processing(t, logsStocks, b, test)
		for _, s := range metricsSignals {
			processing(t, metricsStocks(s), b, test)
		}
	})
}

func eachExporter(t *testing.T, b batching, test func(*testing.T, *flow)) {
	exporting(t, tracesStocks, b, test)
	exporting(t, logsStocks, b, test)
	exporting(t, profilesStocks, b, test)
	for _, s := range metricsSignals {
		exporting(t, metricsStocks(s), b, test)
	}
}

func exporting[T any](t *testing.T, s stocks[T], b batching, test func(*testing.T, *flow)) {
	t.Run(s.kind, func(t *testing.T) { test(t, s.flow(t, s.startExporter, b)) })
}

func processing[T any](t *testing.T, s stocks[T], b batching, test func(*testing.T, *flow)) {
	t.Run(s.kind, func(t *testing.T) { test(t, s.flow(t, s.startBatchProcessor, b)) })
}

func TestQueuedBatchIsThereUntilItWasSent(t *testing.T) {
	eachFlow(t, batching{}, func(t *testing.T, f *flow) {
		first, second := f.send(), f.send()
		f.arrives(t, size)
		first.alive(t, "it is being sent")
		second.alive(t, "it is queued")
		f.let()
		f.arrives(t, size)
		first.over(t, "it was sent")
		second.alive(t, "it is being sent")
		ended := f.shutdown(t)
		f.let()
		ended()
		second.over(t, "it was sent")
	})
}

func TestMergedBatchesAreThereUntilTheyWereSent(t *testing.T) {
	eachFlow(t, batching{sizer: exporterhelper.RequestSizerTypeItems, min: 2 * size}, func(t *testing.T, f *flow) {
		first := f.send()
		first.alive(t, "it waits for others")
		second := f.send()
		f.arrives(t, 2*size)
		first.alive(t, "it is being sent")
		second.alive(t, "it is being sent")
		ended := f.shutdown(t)
		f.let()
		ended()
		first.over(t, "it was sent")
		second.over(t, "it was sent")
	})
}

// TestSplitBatchIsThereUntilItsEndWasSent cuts batches of 10 into parts of 7, which
// are made of the end of one and the beginning of the next.
func TestSplitBatchIsThereUntilItsEndWasSent(t *testing.T) {
	eachFlow(t, batching{sizer: exporterhelper.RequestSizerTypeItems, min: 7, max: 7}, func(t *testing.T, f *flow) {
		first := f.send()
		f.arrives(t, 7) // of the first
		first.alive(t, "a part is being sent")
		f.let()
		second := f.send()
		f.arrives(t, 7) // 3 of the first, 4 of the second
		first.alive(t, "its end is being sent")
		second.alive(t, "a part is being sent")
		f.let()
		third := f.send()
		f.arrives(t, 7) // 6 of the second, 1 of the third
		first.over(t, "its end was sent")
		second.alive(t, "its end is being sent")
		f.let()
		f.arrives(t, 7) // of the third
		second.over(t, "its end was sent")
		ended := f.shutdown(t)
		f.let()
		f.arrives(t, 2) // of the third
		third.alive(t, "its end is being sent")
		f.let()
		ended()
		third.over(t, "its end was sent")
	})
}

// TestBatchSplitByBytesIsThereUntilItsEndWasSent needs no more than that there are
// several parts.
func TestBatchSplitByBytesIsThereUntilItsEndWasSent(t *testing.T) {
	eachExporter(t, batching{sizer: exporterhelper.RequestSizerTypeBytes, min: 200, max: 200}, func(t *testing.T, f *flow) {
		batch := f.send()
		ended := f.shutdown(t)
		parts := 0
		for sent := 0; sent < size; parts++ {
			sent += f.next(t)
			batch.alive(t, "its end has not been sent")
			f.let()
		}
		ended()
		require.Greater(t, parts, 1)
		batch.over(t, "its end was sent")
	})
}
