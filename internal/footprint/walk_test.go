// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestWeighingDoesNotAllocate(t *testing.T) {
	for _, s := range corpus() {
		weigh := s.weighAgain()
		assert.Zero(t, testing.AllocsPerRun(1, func() { weigh() }), s.name)
	}
}

// TestDecodedBatchOwnsItsStrings: if one string pointed into the request, the
// batch would keep all of the request alive, which footprint does not count.
func TestDecodedBatchOwnsItsStrings(t *testing.T) {
	for _, s := range corpus() {
		want, got := s.decodeAndOverwrite(t)
		assert.Equal(t, want, got, s.name)
	}
}

// TestReceiverDecodesTheSame: receivers decode an export request, not traces.
func TestReceiverDecodesTheSame(t *testing.T) {
	td := ptrace.NewTraces()
	fillSpans(td, 100, 5)
	wire, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	received, said := heapOf(t, wire, tracesSignal.receive, Traces, 1<<20)
	assert.InEpsilon(t, received, said, margin)
}

func TestSharedBatchIsWeighedByManyAtOnce(t *testing.T) {
	td := ptrace.NewTraces()
	fillSpans(td, 100, 5)
	td.MarkReadOnly()
	want := Traces(td)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.Equal(t, want, Traces(td)) })
	}
	wg.Wait()
}

// FuzzWeigh weighs whatever the decoders accept, nulls in JSON included.
func FuzzWeigh(f *testing.F) {
	for _, s := range corpus() {
		if wire := s.wire(f); len(wire) < 10_000 {
			f.Add(wire)
		}
	}
	f.Add([]byte(`{"resourceSpans":[null,{"scopeSpans":[{"spans":[null,{"attributes":[{"value":{"arrayValue":null}}]}]}]}]}`))
	f.Add([]byte(`{"resourceLogs":[{"resource":null,"scopeLogs":[{"logRecords":[{"body":{"kvlistValue":null}}]}]}]}`))
	f.Add([]byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":null},{"summary":{"dataPoints":[null]}}]}]}]}`))
	f.Add([]byte(`{"dictionary":null,"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[null]}]}]}]}`))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		weighDecoded(t, tracesSignal, encoded)
		weighDecoded(t, logsSignal, encoded)
		weighDecoded(t, metricsSignal, encoded)
		weighDecoded(t, profilesSignal, encoded)
	})
}

func weighDecoded[T any](t *testing.T, s signal[T], encoded []byte) {
	least := s.weigh(s.empty())
	for _, decode := range []func([]byte) (T, error){s.unmarshal, s.fromJSON} {
		if decoded, err := decode(encoded); err == nil {
			assert.GreaterOrEqual(t, s.weigh(decoded), least)
		}
	}
}
