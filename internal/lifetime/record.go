// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"reflect"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func lastSpan(td ptrace.Traces) any {
	return lastIn(td.ResourceSpans(), ptrace.ResourceSpans.ScopeSpans, func(s ptrace.ScopeSpans) any {
		return last(s.Spans(), itself)
	})
}

func lastLogRecord(ld plog.Logs) any {
	return lastIn(ld.ResourceLogs(), plog.ResourceLogs.ScopeLogs, func(s plog.ScopeLogs) any {
		return last(s.LogRecords(), itself)
	})
}

func lastSample(pd pprofile.Profiles) any {
	return lastIn(pd.ResourceProfiles(), pprofile.ResourceProfiles.ScopeProfiles, func(s pprofile.ScopeProfiles) any {
		return last(s.Profiles(), func(p pprofile.Profile) any { return last(p.Samples(), itself) })
	})
}

func lastDataPoint(md pmetric.Metrics) any {
	return lastIn(md.ResourceMetrics(), pmetric.ResourceMetrics.ScopeMetrics, func(s pmetric.ScopeMetrics) any {
		return last(s.Metrics(), lastPointOf)
	})
}

func lastPointOf(m pmetric.Metric) any {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return last(m.Gauge().DataPoints(), itself)
	case pmetric.MetricTypeSum:
		return last(m.Sum().DataPoints(), itself)
	case pmetric.MetricTypeHistogram:
		return last(m.Histogram().DataPoints(), itself)
	case pmetric.MetricTypeExponentialHistogram:
		return last(m.ExponentialHistogram().DataPoints(), itself)
	case pmetric.MetricTypeSummary:
		return last(m.Summary().DataPoints(), itself)
	}
	return nil
}

// lastIn returns what find returns of the last scope of which it returns something,
// or nil.
func lastIn[RL list[R], SL list[S], R, S any](resources RL, scopes func(R) SL, find func(S) any) any {
	return last(resources, func(r R) any { return last(scopes(r), find) })
}

// list is any of pdata's slices.
type list[T any] interface {
	Len() int
	At(int) T
}

// last returns what find returns of the last element of which it returns something,
// or nil.
func last[L list[T], T any](l L, find func(T) any) any {
	for i := l.Len() - 1; i >= 0; i-- {
		if record := find(l.At(i)); record != nil {
			return record
		}
	}
	return nil
}

func itself[T any](record T) any { return record }

// behind returns the object that one of pdata's wrappers hides, or nil if it is not
// built as pdata builds them: a struct whose first field points to one of the same
// name. It is the only place that looks behind pdata's public API. It asks each
// time, at some 50 ns a batch, and so never guesses, whichever pdata it is built
// with.
func behind(wrapper any) *byte {
	v := reflect.ValueOf(wrapper)
	if v.Kind() != reflect.Struct || v.NumField() == 0 {
		return nil
	}
	orig := v.Field(0)
	if orig.Kind() != reflect.Pointer || orig.Type().Elem().Name() != v.Type().Name() {
		return nil
	}
	return (*byte)(orig.UnsafePointer())
}

// pooled says whether pdata.useProtoPooling is on, asked once: feature gates are set
// before components are built, and the first batch comes after that.
var pooled = sync.OnceValue(pools)

// pools sees the gate by what it does: with pools, overwriting a span resets what it
// held before. Without, that is left to the garbage collector.
func pools() bool {
	span := ptrace.NewSpan()
	attribute := span.Attributes().PutEmpty("") // in an array, which no pool takes: nobody else gets to it
	attribute.SetBool(true)
	ptrace.NewSpan().MoveTo(span)
	return attribute.Type() == pcommon.ValueTypeEmpty
}
