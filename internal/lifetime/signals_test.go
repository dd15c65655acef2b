// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// size is how many records every batch of the tests has.
const size = 10

// signal ties a kind of batch to what the tests do with it.
type signal[T any] struct {
	kind      string
	watch     func(T) *Watch
	empty     func() T
	grow      func(T) // by one resource with one scope of size records
	count     func(T) int
	remove    func(T, func(i int) bool) // the records of the last scope that are chosen
	move      func(from, to T)
	appendTo  func(from, to T)
	copyTo    func(from, to T)
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
}

// batch is one as a receiver hands it on: decoded.
func (s signal[T]) batch(t testing.TB) T {
	built := s.empty()
	s.grow(built)
	wire, err := s.marshal(built)
	require.NoError(t, err)
	decoded, err := s.unmarshal(wire)
	require.NoError(t, err)
	require.Equal(t, size, s.count(decoded))
	return decoded
}

// removable is any of pdata's slices.
type removable[T any] interface{ RemoveIf(func(T) bool) }

// removeChosen removes the elements whose indices are chosen.
func removeChosen[L removable[T], T any](l L, chosen func(i int) bool) {
	i := -1
	l.RemoveIf(func(T) bool { i++; return chosen(i) })
}

var tracesSignal = signal[ptrace.Traces]{
	kind: "traces", watch: Traces, empty: ptrace.NewTraces, count: ptrace.Traces.SpanCount,
	grow: func(td ptrace.Traces) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "checkout")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for range size {
			s := spans.AppendEmpty()
			s.SetName("GET /api/v1/items")
			s.Attributes().PutStr("http.route", "/api/v1/items")
		}
	},
	remove: func(td ptrace.Traces, chosen func(int) bool) {
		removeChosen(lastScopeSpans(td).Spans(), chosen)
	},
	move:     ptrace.Traces.MoveTo,
	appendTo: func(from, to ptrace.Traces) { from.ResourceSpans().MoveAndAppendTo(to.ResourceSpans()) },
	copyTo:   ptrace.Traces.CopyTo,
	marshal:  (&ptrace.ProtoMarshaler{}).MarshalTraces, unmarshal: (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces,
}

func lastScopeSpans(td ptrace.Traces) ptrace.ScopeSpans {
	scopes := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).ScopeSpans()
	return scopes.At(scopes.Len() - 1)
}

var logsSignal = signal[plog.Logs]{
	kind: "logs", watch: Logs, empty: plog.NewLogs, count: plog.Logs.LogRecordCount,
	grow: func(ld plog.Logs) {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "checkout")
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		for range size {
			r := records.AppendEmpty()
			r.Body().SetStr("the cart is empty")
			r.Attributes().PutStr("thread.name", "worker-1")
		}
	},
	remove: func(ld plog.Logs, chosen func(int) bool) {
		scopes := ld.ResourceLogs().At(ld.ResourceLogs().Len() - 1).ScopeLogs()
		removeChosen(scopes.At(scopes.Len()-1).LogRecords(), chosen)
	},
	move:     plog.Logs.MoveTo,
	appendTo: func(from, to plog.Logs) { from.ResourceLogs().MoveAndAppendTo(to.ResourceLogs()) },
	copyTo:   plog.Logs.CopyTo,
	marshal:  (&plog.ProtoMarshaler{}).MarshalLogs, unmarshal: (&plog.ProtoUnmarshaler{}).UnmarshalLogs,
}

// profilesSignal has a sample per profile, since profiles are what is split.
var profilesSignal = signal[pprofile.Profiles]{
	kind: "profiles", watch: Profiles, empty: pprofile.NewProfiles, count: pprofile.Profiles.SampleCount,
	grow: func(pd pprofile.Profiles) {
		pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", "checkout")
		profiles := rp.ScopeProfiles().AppendEmpty().Profiles()
		for i := range size {
			p := profiles.AppendEmpty()
			p.SampleType().SetTypeStrindex(1)
			p.SampleType().SetUnitStrindex(2)
			p.Samples().AppendEmpty().Values().Append(int64(i))
		}
	},
	remove: func(pd pprofile.Profiles, chosen func(int) bool) {
		scopes := pd.ResourceProfiles().At(pd.ResourceProfiles().Len() - 1).ScopeProfiles()
		removeChosen(scopes.At(scopes.Len()-1).Profiles(), chosen)
	},
	move:     pprofile.Profiles.MoveTo,
	appendTo: func(from, to pprofile.Profiles) { from.ResourceProfiles().MoveAndAppendTo(to.ResourceProfiles()) },
	copyTo:   pprofile.Profiles.CopyTo,
	marshal:  (&pprofile.ProtoMarshaler{}).MarshalProfiles, unmarshal: (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles,
}

// points is any of pdata's slices of data points.
type points[P any] interface {
	list[P]
	removable[P]
	AppendEmpty() P
}

// metricsSignal has two points per metric, so that splits go through metrics. set
// makes a metric one of its kind, and get returns its points.
func metricsSignal[L points[P], P any](kind string, set, get func(pmetric.Metric) L) signal[pmetric.Metrics] {
	lastMetric := func(md pmetric.Metrics) pmetric.Metric {
		scopes := md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1).ScopeMetrics()
		metrics := scopes.At(scopes.Len() - 1).Metrics()
		return metrics.At(metrics.Len() - 1)
	}
	return signal[pmetric.Metrics]{
		kind: "metrics, " + kind, watch: Metrics, empty: pmetric.NewMetrics, count: pmetric.Metrics.DataPointCount,
		grow: func(md pmetric.Metrics) {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.name", "checkout")
			metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
			for range size / 2 {
				m := metrics.AppendEmpty()
				m.SetName("http.server.request.duration")
				points := set(m)
				points.AppendEmpty()
				points.AppendEmpty()
			}
		},
		// The points of the last metric take the last indices, and those of the others stay.
		remove: func(md pmetric.Metrics, chosen func(int) bool) {
			points := get(lastMetric(md))
			before := md.DataPointCount() - points.Len()
			removeChosen(points, func(i int) bool { return chosen(before + i) })
		},
		move:     pmetric.Metrics.MoveTo,
		appendTo: func(from, to pmetric.Metrics) { from.ResourceMetrics().MoveAndAppendTo(to.ResourceMetrics()) },
		copyTo:   pmetric.Metrics.CopyTo,
		marshal:  (&pmetric.ProtoMarshaler{}).MarshalMetrics, unmarshal: (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics,
	}
}

var metricsSignals = []signal[pmetric.Metrics]{
	metricsSignal("gauge",
		func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.SetEmptyGauge().DataPoints() },
		func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.Gauge().DataPoints() }),
	metricsSignal("sum",
		func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.SetEmptySum().DataPoints() },
		func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.Sum().DataPoints() }),
	metricsSignal("histogram",
		func(m pmetric.Metric) pmetric.HistogramDataPointSlice { return m.SetEmptyHistogram().DataPoints() },
		func(m pmetric.Metric) pmetric.HistogramDataPointSlice { return m.Histogram().DataPoints() }),
	metricsSignal("exponential histogram",
		func(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
			return m.SetEmptyExponentialHistogram().DataPoints()
		},
		func(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
			return m.ExponentialHistogram().DataPoints()
		}),
	metricsSignal("summary",
		func(m pmetric.Metric) pmetric.SummaryDataPointSlice { return m.SetEmptySummary().DataPoints() },
		func(m pmetric.Metric) pmetric.SummaryDataPointSlice { return m.Summary().DataPoints() }),
}
