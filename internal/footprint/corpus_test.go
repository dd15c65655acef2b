// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// signal ties a kind of batch to its weighing and its codecs.
type signal[T any] struct {
	is        Signal
	weigh     func(T) int64
	items     func(T) int
	empty     func() T
	protoSize func(T) int
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
	receive   func([]byte) (T, error) // decodes like a receiver, which moves what old clients sent to its place
	toJSON    func(T) ([]byte, error)
	fromJSON  func([]byte) (T, error)
}

var (
	tracesSignal = signal[ptrace.Traces]{
		TracesRequest, Traces, ptrace.Traces.SpanCount, ptrace.NewTraces, (&ptrace.ProtoMarshaler{}).TracesSize,
		(&ptrace.ProtoMarshaler{}).MarshalTraces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces,
		func(b []byte) (ptrace.Traces, error) {
			r := ptraceotlp.NewExportRequest()
			return r.Traces(), r.UnmarshalProto(b)
		},
		(&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces,
	}
	logsSignal = signal[plog.Logs]{
		LogsRequest, Logs, plog.Logs.LogRecordCount, plog.NewLogs, (&plog.ProtoMarshaler{}).LogsSize,
		(&plog.ProtoMarshaler{}).MarshalLogs, (&plog.ProtoUnmarshaler{}).UnmarshalLogs,
		func(b []byte) (plog.Logs, error) {
			r := plogotlp.NewExportRequest()
			return r.Logs(), r.UnmarshalProto(b)
		},
		(&plog.JSONMarshaler{}).MarshalLogs, (&plog.JSONUnmarshaler{}).UnmarshalLogs,
	}
	metricsSignal = signal[pmetric.Metrics]{
		MetricsRequest, Metrics, pmetric.Metrics.DataPointCount, pmetric.NewMetrics, (&pmetric.ProtoMarshaler{}).MetricsSize,
		(&pmetric.ProtoMarshaler{}).MarshalMetrics, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics,
		func(b []byte) (pmetric.Metrics, error) {
			r := pmetricotlp.NewExportRequest()
			return r.Metrics(), r.UnmarshalProto(b)
		},
		(&pmetric.JSONMarshaler{}).MarshalMetrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics,
	}
	profilesSignal = signal[pprofile.Profiles]{
		ProfilesRequest, Profiles, pprofile.Profiles.SampleCount, pprofile.NewProfiles, (&pprofile.ProtoMarshaler{}).ProfilesSize,
		(&pprofile.ProtoMarshaler{}).MarshalProfiles, (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles,
		func(b []byte) (pprofile.Profiles, error) {
			r := pprofileotlp.NewExportRequest()
			return r.Profiles(), r.UnmarshalProto(b)
		},
		(&pprofile.JSONMarshaler{}).MarshalProfiles, (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles,
	}
)

// shape is one batch of the corpus. It is built when asked for, so that the
// corpus is not on the heap that is measured.
type shape struct {
	name string
	batch
}

// batch hides the signal's type from tables of shapes.
type batch interface {
	request() Signal
	wire(testing.TB) []byte
	// weighed is a batch's encoding, and what is said of what it decodes to: bytes and items.
	weighed(testing.TB) (body []byte, memory, items int64)
	weighedJSON(testing.TB) (body []byte, memory, items int64)
	// heap is the size of the encoding, what decoding it keeps alive, and what
	// footprint says.
	heap(testing.TB) (encoded int, measured, said int64)
	jsonHeap(testing.TB) (encoded int, measured, said int64)
	// weighAgain weighs one batch as often as the returned function is called.
	weighAgain() func() int64
	// decodeAndOverwrite decodes a batch, overwrites what it was decoded from
	// and returns the encoding of what is left, beside the original one.
	decodeAndOverwrite(testing.TB) (want, got []byte)
}

type batchOf[T any] struct {
	signal[T]
	fill func(T)
}

func (b batchOf[T]) build() T {
	v := b.empty()
	b.fill(v)
	return v
}

func (b batchOf[T]) wire(t testing.TB) []byte {
	wire, err := b.marshal(b.build())
	require.NoError(t, err)
	return wire
}

func (b batchOf[T]) request() Signal { return b.is }

func (b batchOf[T]) weighed(t testing.TB) (body []byte, memory, items int64) {
	body = b.wire(t)
	decoded, err := b.unmarshal(body)
	require.NoError(t, err)
	return body, b.weigh(decoded), int64(b.items(decoded))
}

func (b batchOf[T]) weighedJSON(t testing.TB) (body []byte, memory, items int64) {
	body, err := b.toJSON(b.build())
	require.NoError(t, err)
	decoded, err := b.fromJSON(body)
	require.NoError(t, err)
	return body, b.weigh(decoded), int64(b.items(decoded))
}

func (b batchOf[T]) heap(t testing.TB) (encoded int, measured, said int64) {
	wire := b.wire(t)
	measured, said = heapOf(t, wire, b.unmarshal, b.weigh, 4<<20)
	return len(wire), measured, said
}

func (b batchOf[T]) jsonHeap(t testing.TB) (encoded int, measured, said int64) {
	json, err := b.toJSON(b.build())
	require.NoError(t, err)
	measured, said = heapOf(t, json, b.fromJSON, b.weigh, 1<<20)
	return len(json), measured, said
}

func (b batchOf[T]) weighAgain() func() int64 {
	v := b.build()
	return func() int64 { return b.weigh(v) }
}

func (b batchOf[T]) decodeAndOverwrite(t testing.TB) (want, got []byte) {
	wire := b.wire(t)
	want = bytes.Clone(wire)
	decoded, err := b.unmarshal(wire)
	require.NoError(t, err)
	clear(wire)
	got, err = b.marshal(decoded)
	require.NoError(t, err)
	return want, got
}

func traces(name string, fill func(ptrace.Traces)) shape {
	return shape{name, batchOf[ptrace.Traces]{tracesSignal, fill}}
}

func logs(name string, fill func(plog.Logs)) shape {
	return shape{name, batchOf[plog.Logs]{logsSignal, fill}}
}

func metricBatch(name string, fill func(pmetric.Metrics)) shape {
	return shape{name, batchOf[pmetric.Metrics]{metricsSignal, fill}}
}

func profileBatch(name string, fill func(pprofile.Profiles)) shape {
	return shape{name, batchOf[pprofile.Profiles]{profilesSignal, fill}}
}

// corpus is every kind of batch this package claims to weigh.
func corpus() []shape {
	shapes := append(traceShapes(), logShapes()...)
	shapes = append(shapes, metricShapes()...)
	return append(shapes, profileShapes()...)
}

func describe(r pcommon.Resource, s pcommon.InstrumentationScope) {
	r.Attributes().PutStr("service.name", "checkout")
	r.Attributes().PutStr("host.name", "node-17.eu-west-1")
	s.SetName("io.example.http")
	s.SetVersion("1.27.0")
}

func fill(m pcommon.Map, n int) {
	for i := range n {
		key := fmt.Sprintf("attribute.key.%d", i)
		switch i % 8 {
		case 3:
			m.PutInt(key, int64(i))
		case 5:
			m.PutDouble(key, float64(i))
		case 7:
			m.PutBool(key, true)
		default:
			m.PutStr(key, fmt.Sprintf("value of attribute %d", i))
		}
	}
}

func fillSpans(td ptrace.Traces, n, attrs int) {
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	describe(rs.Resource(), ss.Scope())
	for i := range n {
		s := ss.Spans().AppendEmpty()
		s.SetName("GET /api/v1/items")
		s.SetTraceID([16]byte{1, byte(i)})
		s.SetSpanID([8]byte{2, byte(i)})
		s.SetParentSpanID([8]byte{3})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		fill(s.Attributes(), attrs)
	}
}

func spanShape(n, attrs int) shape {
	return traces(fmt.Sprintf("%d spans, %d attributes", n, attrs), func(td ptrace.Traces) { fillSpans(td, n, attrs) })
}

func fillLogs(ld plog.Logs, n, body int) {
	rl := ld.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	describe(rl.Resource(), sl.Scope())
	for i := range n {
		r := sl.LogRecords().AppendEmpty()
		r.SetTimestamp(1)
		r.SetSeverityNumber(plog.SeverityNumberInfo)
		r.SetSeverityText("INFO")
		if body > 0 {
			r.Body().SetStr(strings.Repeat("x", body))
		}
		r.Attributes().PutStr("thread.name", "worker-1")
		r.Attributes().PutInt("thread.id", int64(i))
	}
}

func fillMetrics(md pmetric.Metrics, n, points int) {
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	describe(rm.Resource(), sm.Scope())
	for i := range n {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("http.server.metric.%d", i))
		m.SetUnit("ms")
		ps := m.SetEmptyGauge().DataPoints()
		for j := range points {
			p := ps.AppendEmpty()
			p.SetTimestamp(2)
			if i%2 == 0 {
				p.SetIntValue(int64(j))
			} else {
				p.SetDoubleValue(float64(j))
			}
			fill(p.Attributes(), 2)
		}
	}
}
