// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// wrap puts content into the fields with these numbers, the innermost first.
func wrap(content []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b := binary.AppendUvarint(nil, uint64(n)<<3|wireBytes)
		content = append(binary.AppendUvarint(b, uint64(len(content))), content...)
	}
	return content
}

func TestValuesNestAsDeepAsPdataFollowsThem(t *testing.T) {
	inArray := func(v []byte) []byte { return wrap(v, 1, 5) }
	inMap := func(v []byte) []byte { return wrap(v, 2, 1, 6) }
	for name, nest := range map[string]func([]byte) []byte{"arrays": inArray, "maps": inMap} {
		refused := 0
		for depth := range 120 {
			var value []byte
			for range depth {
				value = nest(value)
			}
			body := wrap(value, 5, 2, 2, 1) // a log record's body
			decoded, err := logsSignal.receive(body)
			w, wireErr := Wire(LogsRequest, body, 0)
			if err != nil {
				refused++
				assert.ErrorIs(t, wireErr, errNested, "%d %s", depth, name)
				continue
			}
			assert.NoError(t, wireErr, "%d %s", depth, name)
			assert.Equal(t, Logs(decoded), w.Memory, "%d %s", depth, name)
		}
		assert.Positive(t, refused, name)
	}
}

func TestJSONNestsNoDeeperThanProtobuf(t *testing.T) {
	nested := func(depth int) []byte {
		return fmt.Appendf(nil, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":%s{}%s}]}]}]}`,
			strings.Repeat(`{"arrayValue":{"values":[`, depth), strings.Repeat(`]}}`, depth))
	}
	decoded, err := logsSignal.fromJSON(nested(49))
	require.NoError(t, err)
	w, err := JSON(LogsRequest, nested(49), 0)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, w.Memory, Logs(decoded))

	for _, depth := range []int{50, 1_000_000} {
		_, err := JSON(LogsRequest, nested(depth), 0)
		assert.ErrorIs(t, err, errNested)
	}
}

func TestWhatJSONIgnoresMayNestAtWill(t *testing.T) {
	unknown := strings.Repeat(`[{"":`, 1_000_000) + "{}" + strings.Repeat("}]", 1_000_000)
	w, err := JSON(TracesRequest, []byte(`{"unknown":`+unknown+`,"resourceSpans":[{"scopeSpans":[{"spans":[{},{}]}]}]}`), 0)
	assert.NoError(t, err)
	assert.EqualValues(t, 2, w.Items)
}

func TestWalksEndOnceMemoryPassesMost(t *testing.T) {
	td := ptrace.NewTraces()
	fillSpans(td, 1000, 5)
	wire, err := tracesSignal.marshal(td)
	require.NoError(t, err)
	json, err := tracesSignal.toJSON(td)
	require.NoError(t, err)
	for name, weigh := range map[string]func(most int64) (Weight, error){
		"Wire": func(most int64) (Weight, error) { return Wire(TracesRequest, wire, most) },
		"JSON": func(most int64) (Weight, error) { return JSON(TracesRequest, json, most) },
	} {
		whole, err := weigh(0)
		require.NoError(t, err)
		assert.False(t, whole.AtLeast, name)

		fits, err := weigh(whole.Memory)
		require.NoError(t, err)
		assert.Equal(t, whole, fits, name)

		for _, most := range []int64{1, whole.Memory / 10, whole.Memory - 1} {
			part, err := weigh(most)
			require.NoError(t, err)
			assert.True(t, part.AtLeast, name)
			assert.Greater(t, part.Memory, most, name)
			assert.LessOrEqual(t, part.Memory, whole.Memory, name)
		}
		early, err := weigh(whole.Memory / 10)
		require.NoError(t, err)
		assert.Less(t, early.Items, whole.Items/2, name)
	}
}

func TestWalksDoNotAllocate(t *testing.T) {
	for _, s := range corpus() {
		wire := s.wire(t)
		assert.Zero(t, testing.AllocsPerRun(5, func() { _, _ = Wire(s.request(), wire, 0) }), s.name)
		json, _, _ := s.weighedJSON(t)
		assert.Zero(t, testing.AllocsPerRun(5, func() { _, _ = JSON(s.request(), json, 0) }), s.name)
	}
}

// TestNoRequestIsHeavierThanItsWorstCase goes through every list that a request can have, filled with empty
// elements so that its array has just grown, and measures the worst of each signal.
func TestNoRequestIsHeavierThanItsWorstCase(t *testing.T) {
	for s, m := range requests {
		signal := Signal(s)
		worst := 0.0
		lists(m, nil, map[*message]bool{}, func(path []int) {
			for _, n := range []int{1, 2, 9, 17, 257, 10_000} {
				body := wrap(bytes.Repeat(wrap(nil, path[0]), n), path[1:]...)
				w, err := Wire(signal, body, 0)
				require.NoError(t, err, path)
				most := WorstCase(signal, len(body))
				assert.LessOrEqual(t, w.Memory, most, "%d × %v", n, path)
				worst = max(worst, float64(w.Memory)/float64(most))
			}
		})
		assert.InDelta(t, 1, worst, 0.1, "nothing comes near the worst case of signal %d", s)
	}
	for _, s := range corpus() {
		encoded, measured, _ := s.heap(t)
		assert.LessOrEqual(t, measured, WorstCase(s.request(), encoded)+16, s.name)
	}
}

// lists calls do with the way to every field of a message that has content, the innermost number first.
func lists(m *message, way []int, seen map[*message]bool, do func(path []int)) {
	if seen[m] {
		return
	}
	seen[m] = true
	for _, f := range m.named {
		if f.kind == scalar || f.kind == keyRef || f.kind == valueRef {
			continue
		}
		path := append([]int{f.number}, way...)
		do(path)
		if f.of != nil {
			lists(f.of, path, seen, do)
		}
	}
}

func TestEmptySpansTakeAHundredTimesTheirSize(t *testing.T) {
	body := wrap(bytes.Repeat(wrap(nil, 2), 50_000), 2, 1)
	measured, said := heapOf(t, body, tracesSignal.receive, Traces, 4<<20)
	w, err := Wire(TracesRequest, body, 0)
	require.NoError(t, err)
	assert.Equal(t, said, w.Memory)
	assert.InEpsilon(t, measured, w.Memory, margin)
	assert.Greater(t, measured, int64(100*len(body)))
	assert.LessOrEqual(t, measured, WorstCase(TracesRequest, len(body)))
}

func TestATruncatedRequestIsRefused(t *testing.T) {
	ld := plog.NewLogs()
	fillLogs(ld, 3, 10)
	body, err := logsSignal.marshal(ld)
	require.NoError(t, err)
	for end := range body {
		_, wireErr := Wire(LogsRequest, body[:end], 0)
		_, decodeErr := logsSignal.receive(body[:end])
		assert.Equal(t, decodeErr != nil, wireErr != nil, "cut after %d bytes", end)
	}
}
