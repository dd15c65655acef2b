// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

// hidden is the type of the struct behind one of pdata's wrappers, which cannot
// be named here.
func hidden[Wrapper any]() reflect.Type {
	field, _ := reflect.TypeFor[Wrapper]().FieldByName("orig")
	return field.Type.Elem()
}

// choice is the type of the object that the first field of that type among
// oneof's points to.
func choice(wrapper any, field string) reflect.Type {
	return reflect.ValueOf(wrapper).FieldByName("orig").Elem().FieldByName(field).Elem().Elem().Type()
}

func TestSizesAreThoseOfPdata(t *testing.T) {
	state, _ := reflect.TypeFor[ptrace.Traces]().FieldByName("state")
	list := choice(pcommon.NewValueMap(), "Value")
	metric, point, exemplar := pmetric.NewMetric(), pmetric.NewNumberDataPoint(), pmetric.NewExemplar()
	metric.SetEmptyGauge()
	point.SetIntValue(1)
	exemplar.SetIntValue(1)

	for _, c := range []struct {
		name string
		size int
		is   reflect.Type
	}{
		{"sizeState", sizeState, state.Type.Elem()},
		{"sizeRequest", sizeRequest, hidden[ptrace.Traces]()},
		{"sizeRequest", sizeRequest, hidden[plog.Logs]()},
		{"sizeRequest", sizeRequest, hidden[pmetric.Metrics]()},
		{"sizeProfilesRequest", sizeProfilesRequest, hidden[pprofile.Profiles]()},
		{"sizeResource", sizeResource, hidden[ptrace.ResourceSpans]()},
		{"sizeResource", sizeResource, hidden[plog.ResourceLogs]()},
		{"sizeResource", sizeResource, hidden[pmetric.ResourceMetrics]()},
		{"sizeProfilesResource", sizeProfilesResource, hidden[pprofile.ResourceProfiles]()},
		{"sizeScope", sizeScope, hidden[ptrace.ScopeSpans]()},
		{"sizeScope", sizeScope, hidden[plog.ScopeLogs]()},
		{"sizeScope", sizeScope, hidden[pmetric.ScopeMetrics]()},
		{"sizeScope", sizeScope, hidden[pprofile.ScopeProfiles]()},
		{"sizeEntityRef", sizeEntityRef, hidden[entity.EntityRef]()},
		{"sizeKeyValue", sizeKeyValue, hidden[pcommon.Map]().Elem()},
		{"sizeAnyValue", sizeAnyValue, hidden[pcommon.Slice]().Elem()},
		{"sizeStringValue", sizeStringValue, choice(pcommon.NewValueStr("x"), "Value")},
		{"sizeBytesValue", sizeBytesValue, choice(pcommon.NewValueBytes(), "Value")},
		{"sizeNumberValue", sizeNumberValue, choice(pcommon.NewValueInt(1), "Value")},
		{"sizeNumberValue", sizeNumberValue, choice(pcommon.NewValueDouble(1), "Value")},
		{"sizeNumberValue", sizeNumberValue, choice(point, "Value")},
		{"sizeNumberValue", sizeNumberValue, choice(exemplar, "Value")},
		{"sizeBoolValue", sizeBoolValue, choice(pcommon.NewValueBool(true), "Value")},
		{"sizeListValue", sizeListValue, list},
		{"sizeValueList", sizeValueList, list.Field(0).Type.Elem()},
		{"sizeListValue", sizeListValue, choice(pcommon.NewValueSlice(), "Value")},
		{"sizeSpan", sizeSpan, hidden[ptrace.Span]()},
		{"sizeSpanEvent", sizeSpanEvent, hidden[ptrace.SpanEvent]()},
		{"sizeSpanLink", sizeSpanLink, hidden[ptrace.SpanLink]()},
		{"sizeLogRecord", sizeLogRecord, hidden[plog.LogRecord]()},
		{"sizeMetric", sizeMetric, hidden[pmetric.Metric]()},
		{"sizeData", sizeData, choice(metric, "Data")},
		{"sizePoints", sizePoints, hidden[pmetric.Gauge]()},
		{"sizePoints", sizePoints, hidden[pmetric.Summary]()},
		{"sizeTemporalPoints", sizeTemporalPoints, hidden[pmetric.Sum]()},
		{"sizeTemporalPoints", sizeTemporalPoints, hidden[pmetric.Histogram]()},
		{"sizeTemporalPoints", sizeTemporalPoints, hidden[pmetric.ExponentialHistogram]()},
		{"sizeNumberPoint", sizeNumberPoint, hidden[pmetric.NumberDataPoint]()},
		{"sizeHistogramPoint", sizeHistogramPoint, hidden[pmetric.HistogramDataPoint]()},
		{"sizeExponentialPoint", sizeExponentialPoint, hidden[pmetric.ExponentialHistogramDataPoint]()},
		{"sizeSummaryPoint", sizeSummaryPoint, hidden[pmetric.SummaryDataPoint]()},
		{"sizeQuantile", sizeQuantile, hidden[pmetric.SummaryDataPointValueAtQuantile]()},
		{"sizeExemplar", sizeExemplar, hidden[pmetric.Exemplar]()},
		{"sizeProfile", sizeProfile, hidden[pprofile.Profile]()},
		{"sizeSample", sizeSample, hidden[pprofile.Sample]()},
		{"sizeMapping", sizeMapping, hidden[pprofile.Mapping]()},
		{"sizeLocation", sizeLocation, hidden[pprofile.Location]()},
		{"sizeLine", sizeLine, hidden[pprofile.Line]()},
		{"sizeFunction", sizeFunction, hidden[pprofile.Function]()},
		{"sizeLink", sizeLink, hidden[pprofile.Link]()},
		{"sizeStack", sizeStack, hidden[pprofile.Stack]()},
		{"sizeAttributeUnit", sizeAttributeUnit, hidden[pprofile.KeyValueAndUnit]()},
	} {
		assert.EqualValues(t, c.is.Size(), c.size, "%s, %s", c.name, c.is)
	}
}

func TestSlotsAreThoseOfTheRuntime(t *testing.T) {
	sizes := []int{40_000, 1_000_000}
	for _, class := range classes {
		sizes = append(sizes, int(class), int(class)+1)
	}
	for _, n := range sizes {
		assert.EqualValues(t, cap(append([]byte(nil), make([]byte, n)...)), object(n), "%d bytes", n)
	}
}

func TestArraysGrowLikeTheRuntimes(t *testing.T) {
	grows[*byte](t, pointers)
	grows[string](t, texts)
	grows[any](t, anyValues)
	grows[[sizeKeyValue / 8]*byte](t, keyValues)
	grows[[sizeExemplar / 8]*byte](t, exemplars)
	grows[int32](t, int32s)
	grows[int64](t, int64s)
}

var escaped any

func grows[T any](t *testing.T, a *array) {
	assert.EqualValues(t, reflect.TypeFor[T]().Size(), a.elem)
	slice := new([]T)
	escaped = slice // a slice that stays on the stack starts with a larger array
	for n := range 5000 {
		capacity, _ := a.append(n)
		if !assert.Equal(t, cap(*slice), capacity, "%d × %s", n, reflect.TypeFor[T]()) {
			return
		}
		*slice = append(*slice, *new(T))
	}
}
