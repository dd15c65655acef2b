// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"fmt"
	"math"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"
)

func TestRandomTracesMatchLiveHeap(t *testing.T)  { matchesHeap(t, tracesSignal, drawSpans) }
func TestRandomLogsMatchLiveHeap(t *testing.T)    { matchesHeap(t, logsSignal, drawLogs) }
func TestRandomMetricsMatchLiveHeap(t *testing.T) { matchesHeap(t, metricsSignal, drawMetrics) }

// matchesHeap holds random batches to a wider margin than the corpus: small ones
// may be tiny objects for the most part.
func matchesHeap[T any](t *testing.T, s signal[T], draw func(*rapid.T, T)) {
	rapid.Check(t, func(r *rapid.T) {
		built := s.empty()
		draw(r, built)
		wire, err := s.marshal(built)
		if err != nil {
			r.Fatal(err)
		}
		measured, said := heapOf(t, wire, s.unmarshal, s.weigh, 256<<10)
		if off := float64(said)/float64(measured) - 1; math.Abs(off) > 1.5*margin {
			r.Errorf("footprint %d, live heap %d: off by %+.1f%%", said, measured, 100*off)
		}
	})
}

func TestAnAttributeNeverLowersTheFootprint(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		td := ptrace.NewTraces()
		drawSpans(r, td)
		attributes := td.ResourceSpans().At(0).Resource().Attributes()
		before := Traces(td)
		for i := range 100 {
			drawValue(r, attributes.PutEmpty(fmt.Sprint("added", i)), 1)
			after := Traces(td)
			if after < before {
				r.Fatalf("from %d to %d with attribute %d", before, after, i)
			}
			before = after
		}
	})
}

func drawSpans(r *rapid.T, td ptrace.Traces) {
	rs := td.ResourceSpans().AppendEmpty()
	drawMap(r, rs.Resource().Attributes(), 2)
	for range several(r, 2) {
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(drawText(r))
		for range several(r, 20) {
			s := ss.Spans().AppendEmpty()
			s.SetName(drawText(r))
			drawMap(r, s.Attributes(), 2)
			for range several(r, 2) {
				drawMap(r, s.Events().AppendEmpty().Attributes(), 0)
				s.Links().AppendEmpty().TraceState().FromRaw(drawText(r))
			}
		}
	}
}

func drawLogs(r *rapid.T, ld plog.Logs) {
	rl := ld.ResourceLogs().AppendEmpty()
	drawMap(r, rl.Resource().Attributes(), 2)
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for range several(r, 20) {
		l := records.AppendEmpty()
		l.SetSeverityText(drawText(r))
		drawValue(r, l.Body(), 3)
		drawMap(r, l.Attributes(), 1)
	}
}

func drawMetrics(r *rapid.T, md pmetric.Metrics) {
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for range several(r, 10) {
		m := metrics.AppendEmpty()
		m.SetName(drawText(r))
		points := several(r, 5)
		switch rapid.IntRange(0, 2).Draw(r, "type") {
		case 0:
			m.SetEmptySum()
			for range points {
				p := m.Sum().DataPoints().AppendEmpty()
				p.SetIntValue(1)
				drawMap(r, p.Attributes(), 0)
			}
		case 1:
			m.SetEmptyHistogram()
			for range points {
				p := m.Histogram().DataPoints().AppendEmpty()
				p.BucketCounts().FromRaw(make([]uint64, several(r, 30)))
				drawMap(r, p.Attributes(), 0)
			}
		default:
			m.SetEmptyExponentialHistogram()
			for range points {
				p := m.ExponentialHistogram().DataPoints().AppendEmpty()
				p.Positive().BucketCounts().FromRaw(make([]uint64, several(r, 100)))
				exemplify(p.Exemplars(), several(r, 3))
			}
		}
	}
}

func several(r *rapid.T, most int) int { return rapid.IntRange(0, most).Draw(r, "several") }

func drawText(r *rapid.T) string { return string(make([]byte, several(r, 60))) }

func drawMap(r *rapid.T, m pcommon.Map, depth int) {
	for i := range several(r, 12) {
		drawValue(r, m.PutEmpty(fmt.Sprint("key.", i, drawText(r))), depth)
	}
}

// drawValue nests at most depth deep.
func drawValue(r *rapid.T, v pcommon.Value, depth int) {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds).Draw(r, "kind") {
	case 0:
		v.SetInt(1)
	case 1:
		v.SetBool(true)
	case 2:
		v.SetEmptyBytes().FromRaw(make([]byte, several(r, 200)))
	case 3, 4:
		v.SetStr(drawText(r))
	case 5:
		drawMap(r, v.SetEmptyMap(), depth-1)
	case 6:
		s := v.SetEmptySlice()
		for range several(r, 20) {
			drawValue(r, s.AppendEmpty(), depth-1)
		}
	}
}
