// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestEveryFieldOfPdataThatTakesHeapIsDescribed fails when a new pdata decodes more than the table knows.
func TestEveryFieldOfPdataThatTakesHeapIsDescribed(t *testing.T) {
	for _, c := range []struct {
		is reflect.Type
		of *message
	}{
		{hidden[ptrace.Traces](), requests[TracesRequest]},
		{hidden[pmetric.Metrics](), requests[MetricsRequest]},
		{hidden[plog.Logs](), requests[LogsRequest]},
		{hidden[pprofile.Profiles](), requests[ProfilesRequest]},
		{hidden[pmetric.Gauge](), metricMessage.fields[5].of},
		{hidden[pmetric.Sum](), metricMessage.fields[7].of},
		{hidden[pmetric.Histogram](), metricMessage.fields[9].of},
		{hidden[pmetric.ExponentialHistogram](), metricMessage.fields[10].of},
		{hidden[pmetric.Summary](), metricMessage.fields[11].of},
	} {
		described(t, c.is, c.of, c.is.Name())
	}
}

func described(t *testing.T, is reflect.Type, m *message, path string) {
	for i := range is.NumField() {
		goField := is.Field(i)
		if !takesHeap(goField.Type) || goField.Type.Kind() == reflect.Interface { // a oneof, which the corpus has
			continue
		}
		name := strings.ToLower(goField.Name[:1]) + goField.Name[1:]
		path := path + "." + name
		var f *field
		for _, named := range m.named {
			if named.name == name {
				f = named
			}
		}
		if !assert.NotNil(t, f, path) {
			continue
		}
		switch element := goField.Type; element.Kind() {
		case reflect.String:
			assert.Equal(t, str, f.kind, path)
		case reflect.Struct:
			assert.Equal(t, part, f.kind, path)
			described(t, element, f.of, path)
		case reflect.Slice:
			describedList(t, element.Elem(), f, path)
		}
	}
}

func describedList(t *testing.T, element reflect.Type, f *field, path string) {
	if element.Kind() == reflect.Uint8 {
		assert.Equal(t, octets, f.kind, path)
		return
	}
	assert.EqualValues(t, element.Size(), f.array.elem, path)
	switch element.Kind() {
	case reflect.Pointer:
		assert.Equal(t, object(int(element.Elem().Size())), f.heap, path)
		described(t, element.Elem(), f.of, path)
	case reflect.Struct:
		described(t, element, f.of, path)
	case reflect.String:
		assert.Equal(t, strs, f.kind, path)
	default:
		assert.Contains(t, []kind{varints, fixed}, f.kind, path)
	}
}

func takesHeap(is reflect.Type) bool {
	switch is.Kind() {
	case reflect.String, reflect.Slice, reflect.Interface:
		return true
	case reflect.Struct:
		for i := range is.NumField() {
			if takesHeap(is.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
