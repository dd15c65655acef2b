// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-governor/otel-governor/internal/footprint"
)

// encodable is what a client sends: 512 records of one signal with 8 attributes each.
type encodable[T any] struct {
	signal   footprint.Signal
	build    func() T
	marshal  func(T) ([]byte, error)
	decode   func([]byte) (T, error)
	toJSON   func(T) ([]byte, error)
	fromJSON func([]byte) (T, error)
}

var (
	spanRequest = encodable[ptrace.Traces]{
		footprint.TracesRequest, buildSpans,
		(&ptrace.ProtoMarshaler{}).MarshalTraces, (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces,
		(&ptrace.JSONMarshaler{}).MarshalTraces, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces,
	}
	recordRequest = encodable[plog.Logs]{
		footprint.LogsRequest, build512Records,
		(&plog.ProtoMarshaler{}).MarshalLogs, (&plog.ProtoUnmarshaler{}).UnmarshalLogs,
		(&plog.JSONMarshaler{}).MarshalLogs, (&plog.JSONUnmarshaler{}).UnmarshalLogs,
	}
	pointRequest = encodable[pmetric.Metrics]{
		footprint.MetricsRequest, build512Points,
		(&pmetric.ProtoMarshaler{}).MarshalMetrics, (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics,
		(&pmetric.JSONMarshaler{}).MarshalMetrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics,
	}
)

// wireWalk weighs the request undecoded, and wireDecode decodes it; jsonWalk and jsonDecode do the same with JSON.

func (q encodable[T]) wireWalk(b *testing.B)   { walk(b, q, q.marshal, footprint.Wire) }
func (q encodable[T]) wireDecode(b *testing.B) { decode(b, q, q.marshal, q.decode) }
func (q encodable[T]) jsonWalk(b *testing.B)   { walk(b, q, q.toJSON, footprint.JSON) }
func (q encodable[T]) jsonDecode(b *testing.B) { decode(b, q, q.toJSON, q.fromJSON) }

func walk[T any](b *testing.B, q encodable[T], encode func(T) ([]byte, error), weigh func(footprint.Signal, []byte, int64) (footprint.Weight, error)) {
	body, err := encode(q.build())
	require.NoError(b, err)
	for b.Loop() {
		if _, err := weigh(q.signal, body, 0); err != nil {
			panic(err)
		}
	}
}

func decode[T any](b *testing.B, q encodable[T], encode func(T) ([]byte, error), read func([]byte) (T, error)) {
	body, err := encode(q.build())
	require.NoError(b, err)
	for b.Loop() {
		if _, err := read(body); err != nil {
			panic(err)
		}
	}
}

func build512Records() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	describe(rl.Resource(), sl.Scope())
	for range 512 {
		r := sl.LogRecords().AppendEmpty()
		r.SetTimestamp(1)
		r.SetSeverityText("INFO")
		r.Body().SetStr(strings.Repeat("x", 100))
		annotate(r.Attributes(), 8)
	}
	return ld
}

func build512Points() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	describe(rm.Resource(), sm.Scope())
	for i := range 128 {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("http.server.metric.%d", i))
		m.SetUnit("ms")
		ps := m.SetEmptyGauge().DataPoints()
		for j := range 4 {
			p := ps.AppendEmpty()
			p.SetTimestamp(2)
			p.SetDoubleValue(float64(j))
			annotate(p.Attributes(), 8)
		}
	}
	return md
}
