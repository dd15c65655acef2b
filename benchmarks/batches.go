// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-governor/otel-governor/internal/footprint"
)

// batch is one batch, with what can be done to batches of its signal.
type batch[T any] struct {
	build     func() T
	weigh     func(T) int64
	size      func(T) int
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
}

var (
	spans = batch[ptrace.Traces]{
		buildSpans, footprint.Traces, (&ptrace.ProtoMarshaler{}).TracesSize,
		(&ptrace.ProtoMarshaler{}).MarshalTraces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces,
	}
	records = batch[plog.Logs]{
		buildRecords, footprint.Logs, (&plog.ProtoMarshaler{}).LogsSize,
		(&plog.ProtoMarshaler{}).MarshalLogs, (&plog.ProtoUnmarshaler{}).UnmarshalLogs,
	}
	points = batch[pmetric.Metrics]{
		buildPoints, footprint.Metrics, (&pmetric.ProtoMarshaler{}).MetricsSize,
		(&pmetric.ProtoMarshaler{}).MarshalMetrics, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics,
	}
)

// wire is the batch as a client sends it.
func (s batch[T]) wire(b *testing.B) []byte {
	wire, err := s.marshal(s.build())
	require.NoError(b, err)
	return wire
}

// decoded is the batch as a receiver has it.
func (s batch[T]) decoded(b *testing.B) T {
	v, err := s.unmarshal(s.wire(b))
	require.NoError(b, err)
	return v
}

func (s batch[T]) weighing(b *testing.B) {
	v := s.decoded(b)
	for b.Loop() {
		s.weigh(v)
	}
}

func (s batch[T]) sizing(b *testing.B) {
	v := s.decoded(b)
	for b.Loop() {
		s.size(v)
	}
}

func (s batch[T]) decoding(b *testing.B) {
	wire := s.wire(b)
	for b.Loop() {
		if _, err := s.unmarshal(wire); err != nil {
			panic(err)
		}
	}
}

func describe(r pcommon.Resource, s pcommon.InstrumentationScope) {
	r.Attributes().PutStr("service.name", "checkout")
	r.Attributes().PutStr("k8s.pod.name", "checkout-6d4cf56db6-x2x7k")
	s.SetName("io.example.http")
}

// annotate puts n attributes, every fourth of them a number.
func annotate(m pcommon.Map, n int) {
	for i := range n {
		if key := fmt.Sprintf("attribute.key.%d", i); i%4 == 3 {
			m.PutInt(key, int64(i))
		} else {
			m.PutStr(key, fmt.Sprintf("value of attribute %d", i))
		}
	}
}

func buildSpans() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	describe(rs.Resource(), ss.Scope())
	for i := range 512 {
		s := ss.Spans().AppendEmpty()
		s.SetName("GET /api/v1/items")
		s.SetTraceID([16]byte{1, byte(i)})
		s.SetSpanID([8]byte{2, byte(i)})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		annotate(s.Attributes(), 8)
	}
	return td
}

func buildRecords() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	describe(rl.Resource(), sl.Scope())
	for range 512 {
		r := sl.LogRecords().AppendEmpty()
		r.SetTimestamp(1)
		r.SetSeverityNumber(plog.SeverityNumberInfo)
		r.SetSeverityText("INFO")
		r.Body().SetStr(strings.Repeat("x", 100))
		annotate(r.Attributes(), 2)
	}
	return ld
}

func buildPoints() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	describe(rm.Resource(), sm.Scope())
	for i := range 2048 {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("http.server.metric.%d", i))
		m.SetUnit("ms")
		ps := m.SetEmptyGauge().DataPoints()
		for j := range 4 {
			p := ps.AppendEmpty()
			p.SetTimestamp(2)
			p.SetDoubleValue(float64(j))
			annotate(p.Attributes(), 2)
		}
	}
	return md
}
