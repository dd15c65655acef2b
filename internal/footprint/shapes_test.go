// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

func traceShapes() []shape {
	return []shape{
		traces("no spans", func(ptrace.Traces) {}),
		spanShape(1, 0),
		spanShape(512, 0),
		spanShape(512, 4),
		spanShape(512, 12),
		spanShape(8192, 8),
		traces("10000 empty spans", func(td ptrace.Traces) {
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for range 10_000 {
				spans.AppendEmpty()
			}
		}),
		traces("spans with events, links, state", func(td ptrace.Traces) {
			fillSpans(td, 200, 3)
			for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				s.TraceState().FromRaw("vendor=opaque-value,other=1")
				s.Status().SetMessage("deadline exceeded")
				for i := range 3 {
					e := s.Events().AppendEmpty()
					e.SetName("exception")
					fill(e.Attributes(), i)
					l := s.Links().AppendEmpty()
					l.TraceState().FromRaw("vendor=x")
					fill(l.Attributes(), 1)
				}
			}
		}),
		traces("300 resources, 3 scopes each, 1 span", func(td ptrace.Traces) {
			for range 300 {
				rs := td.ResourceSpans().AppendEmpty()
				rs.SetSchemaUrl("https://opentelemetry.io/schemas/1.27.0")
				for range 3 {
					ss := rs.ScopeSpans().AppendEmpty()
					ss.SetSchemaUrl("https://opentelemetry.io/schemas/1.27.0")
					describe(rs.Resource(), ss.Scope())
					fill(ss.Scope().Attributes(), 2)
					ss.Spans().AppendEmpty().SetName("poll")
				}
			}
		}),
		traces("10000 empty entity references", func(td ptrace.Traces) {
			refs := entity.ResourceEntityRefs(td.ResourceSpans().AppendEmpty().Resource())
			for range 10_000 {
				refs.AppendEmpty()
			}
		}),
		traces("resources with entities", func(td ptrace.Traces) {
			for range 100 {
				e := entity.ResourceEntityRefs(td.ResourceSpans().AppendEmpty().Resource()).AppendEmpty()
				e.SetType("k8s.pod")
				e.SetSchemaUrl("https://opentelemetry.io/schemas/1.27.0")
				e.IdKeys().Append("k8s.pod.uid")
				e.DescriptionKeys().Append("k8s.pod.name", "k8s.namespace.name", "k8s.node.name")
			}
		}),
		traces("one span, 1 MB attribute", func(td ptrace.Traces) {
			s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			s.Attributes().PutStr("payload", strings.Repeat("x", 1_000_000))
		}),
		traces("one span, 5000 attributes", func(td ptrace.Traces) {
			attrs := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes()
			fill(attrs, 5000)
		}),
	}
}

func logShapes() []shape {
	rows := []shape{
		logs("10000 empty log records", func(ld plog.Logs) {
			records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for range 10_000 {
				records.AppendEmpty()
			}
		}),
		bodyShape("slice of 10000 empty values", func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for range 10_000 {
				s.AppendEmpty()
			}
		}),
		bodyShape("slice of 10000 numbers", func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for i := range 10_000 {
				s.AppendEmpty().SetInt(int64(i))
			}
		}),
		bodyShape("slice of 10000 booleans", func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for range 10_000 {
				s.AppendEmpty().SetBool(true)
			}
		}),
		bodyShape("slice of 500 byte strings", func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for i := range 500 {
				s.AppendEmpty().SetEmptyBytes().FromRaw(make([]byte, i))
			}
		}),
		bodyShape("maps 30 deep", func(v pcommon.Value) {
			m := v.SetEmptyMap()
			for range 30 {
				fill(m, 3)
				m = m.PutEmptyMap("nested")
			}
		}),
		bodyShape("slices of slices of maps", func(v pcommon.Value) {
			for range 20 {
				s := v.SetEmptySlice()
				for range 20 {
					inner := s.AppendEmpty().SetEmptySlice()
					for i := range 20 {
						fill(inner.AppendEmpty().SetEmptyMap(), i%4)
					}
				}
			}
		}),
	}
	for _, size := range []int{0, 100, 1000} {
		rows = append(rows, logs(fmt.Sprintf("512 logs, body of %d bytes", size), func(ld plog.Logs) { fillLogs(ld, 512, size) }))
	}
	// Strings around the edges of size classes, alone.
	for _, size := range []int{3, 5, 9, 15, 16, 17, 33, 1025, 32768, 32769} {
		n := min(300, 400_000/size)
		rows = append(rows, bodyShape(fmt.Sprintf("slice of %d strings of %d bytes", n, size), func(v pcommon.Value) {
			s := v.SetEmptySlice()
			for range n {
				s.AppendEmpty().SetStr(strings.Repeat("x", size))
			}
		}))
	}
	return rows
}

// bodyShape is one log record with that body.
func bodyShape(name string, set func(pcommon.Value)) shape {
	return logs(name, func(ld plog.Logs) {
		r := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		r.SetEventName("event")
		set(r.Body())
	})
}

func metricShapes() []shape {
	return []shape{
		metricBatch("2048 metrics, 4 points", func(md pmetric.Metrics) { fillMetrics(md, 2048, 4) }),
		metricsOf("sums with exemplars", func(m pmetric.Metric) {
			for i := range 5 {
				p := m.SetEmptySum().DataPoints().AppendEmpty()
				p.SetIntValue(int64(i))
				exemplify(p.Exemplars(), 5)
			}
		}),
		metricsOf("points without a value", func(m pmetric.Metric) {
			for range 10 {
				m.SetEmptyGauge().DataPoints().AppendEmpty()
			}
		}),
		metricsOf("metrics without data", func(pmetric.Metric) {}),
		metricsOf("histograms", func(m pmetric.Metric) {
			points := m.SetEmptyHistogram().DataPoints()
			for range 3 {
				p := points.AppendEmpty()
				p.SetSum(1)
				p.SetMin(0)
				p.SetMax(2)
				p.BucketCounts().FromRaw(make([]uint64, 16))
				p.ExplicitBounds().FromRaw(make([]float64, 15))
				fill(p.Attributes(), 3)
				exemplify(p.Exemplars(), 2)
			}
		}),
		metricsOf("exponential histograms", func(m pmetric.Metric) {
			points := m.SetEmptyExponentialHistogram().DataPoints()
			for range 3 {
				p := points.AppendEmpty()
				p.SetZeroThreshold(1)
				p.Positive().BucketCounts().FromRaw(make([]uint64, 160))
				p.Negative().BucketCounts().FromRaw(make([]uint64, 3))
				fill(p.Attributes(), 3)
				exemplify(p.Exemplars(), 1)
			}
		}),
		metricsOf("summaries", func(m pmetric.Metric) {
			points := m.SetEmptySummary().DataPoints()
			for range 3 {
				p := points.AppendEmpty()
				fill(p.Attributes(), 3)
				for range 5 {
					p.QuantileValues().AppendEmpty().SetQuantile(0.5)
				}
			}
		}),
	}
}

// metricsOf is 100 metrics with that data.
func metricsOf(name string, set func(pmetric.Metric)) shape {
	return metricBatch(name, func(md pmetric.Metrics) {
		rm := md.ResourceMetrics().AppendEmpty()
		sm := rm.ScopeMetrics().AppendEmpty()
		describe(rm.Resource(), sm.Scope())
		for range 100 {
			m := sm.Metrics().AppendEmpty()
			m.SetName("http.server.request.duration")
			m.SetDescription("Duration of HTTP server requests.")
			m.SetUnit("s")
			fill(m.Metadata(), 1)
			set(m)
		}
	})
}

func exemplify(es pmetric.ExemplarSlice, n int) {
	for i := range n {
		e := es.AppendEmpty()
		e.SetDoubleValue(float64(i))
		e.SetTraceID([16]byte{1})
		fill(e.FilteredAttributes(), 1)
	}
}

func profileShapes() []shape {
	return []shape{
		profileBatch("no profiles", func(pprofile.Profiles) {}),
		profileBatch("a CPU profile with its dictionary", func(pd pprofile.Profiles) { fillProfile(pd, 2000) }),
		profileBatch("a profile that carries its original", func(pd pprofile.Profiles) {
			p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
			p.SetOriginalPayloadFormat("pprof")
			p.OriginalPayload().FromRaw(make([]byte, 50_000))
			p.AttributeIndices().FromRaw([]int32{1, 2, 3})
		}),
	}
}

func fillProfile(pd pprofile.Profiles, n int) {
	d := pd.Dictionary()
	d.StringTable().Append("")
	for i := range n {
		index := int32(i)
		d.StringTable().Append(fmt.Sprintf("github.com/example/project/internal/pkg.(*Type).Method%d", i))
		f := d.FunctionTable().AppendEmpty()
		f.SetNameStrindex(index)
		f.SetFilenameStrindex(index)
		l := d.LocationTable().AppendEmpty()
		l.SetAddress(uint64(i))
		l.Lines().AppendEmpty().SetFunctionIndex(index)
		if i%10 == 0 {
			l.Lines().AppendEmpty().SetLine(1)
			l.AttributeIndices().FromRaw([]int32{1})
		}
		d.StackTable().AppendEmpty().LocationIndices().FromRaw(make([]int32, 1+i%40))
	}
	for i := range 50 {
		d.MappingTable().AppendEmpty().AttributeIndices().FromRaw([]int32{1, 2})
		d.LinkTable().AppendEmpty().SetSpanID([8]byte{1})
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(i))
		a.Value().SetStr("a thread name")
	}
	rp := pd.ResourceProfiles().AppendEmpty()
	sp := rp.ScopeProfiles().AppendEmpty()
	describe(rp.Resource(), sp.Scope())
	samples := sp.Profiles().AppendEmpty().Samples()
	for i := range n {
		s := samples.AppendEmpty()
		s.SetStackIndex(int32(i))
		s.Values().FromRaw([]int64{1, 10})
		s.TimestampsUnixNano().FromRaw(make([]uint64, i%5))
		s.AttributeIndices().FromRaw([]int32{1, 2, 3})
	}
}
