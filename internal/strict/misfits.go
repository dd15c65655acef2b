// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// misfit is a key that is not to be decoded: with an error, or because it is empty where keys are wanted, or
// because the errors are those of elements of its list.
type misfit struct {
	key string
	err error
}

// misfits finds keys that t does not have, values where t has sections, and the reverse.
func misfits(found map[string]any, t reflect.Type, prefix string) []misfit {
	fields := make(map[string]reflect.Type, t.NumField())
	for f := range fieldsOf(t) {
		fields[key(f)] = f.Type
	}
	return misfitsOf(found, fields, prefix)
}

func misfitsOf(found map[string]any, fields map[string]reflect.Type, prefix string) []misfit {
	var faults []misfit
	for _, name := range slices.Sorted(maps.Keys(found)) {
		path, value := prefix+name, found[name]
		report := func(format string, args ...any) {
			faults = append(faults, misfit{path, fmt.Errorf("'%s' "+format, append([]any{path}, args...)...)})
		}
		sub, isMap := value.(map[string]any)
		elements, isList := value.([]any)
		ft, known := fields[name]
		switch {
		case !known:
			report("is not a key here, allowed are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case isSection(ft) && isMap:
			faults = append(faults, misfits(sub, ft, path+confmap.KeyDelimiter)...)
		case isMapOfSections(ft) && isMap:
			for _, name := range slices.Sorted(maps.Keys(sub)) {
				one := map[string]any{name: sub[name]}
				faults = append(faults, misfitsOf(one, map[string]reflect.Type{name: ft.Elem()}, path+confmap.KeyDelimiter)...)
			}
		case ft.Kind() == reflect.Slice && isList:
			faults = append(faults, misfitsIn(elements, ft.Elem(), path)...)
		case !isValue(ft) && isEmpty(value):
			faults = append(faults, misfit{path, nil})
		case isSection(ft):
			report("must hold keys (%s), got %v", strings.Join(keysOf(ft), ", "), value)
		case isMapOfSections(ft):
			report("must hold names with keys (%s) each, got %v", strings.Join(keysOf(ft.Elem()), ", "), value)
		case isListOfSections(ft):
			report("must be a list with keys (%s) in each element, got %v", strings.Join(keysOf(ft.Elem()), ", "), value)
		case ft.Kind() == reflect.Slice:
			report("must be a list such as [a, b], got %v", value)
		case isMap:
			report("must be a single value, got keys (%s)", strings.Join(slices.Sorted(maps.Keys(sub)), ", "))
		case isList:
			report("must be a single value, got the list %v", value)
		}
	}
	return faults
}

// misfitsIn finds the misfits among the elements of a list of t. Elements with keys of their own are not looked
// into. Other elements cannot be left out of the decoding, so with a fault among them the whole list is.
func misfitsIn(elements []any, t reflect.Type, path string) []misfit {
	var faults []misfit
	for i, e := range elements {
		if _, isMap := e.(map[string]any); isMap && isSection(t) {
			continue
		}
		at := strconv.Itoa(i)
		one := map[string]any{at: e}
		faults = append(faults, misfitsOf(one, map[string]reflect.Type{at: t}, path+confmap.KeyDelimiter)...)
	}
	if len(faults) > 0 && !isSection(t) {
		faults = append(faults, misfit{path, nil})
	}
	return faults
}

// isEmpty reports whether value is what an unset key looks like.
func isEmpty(value any) bool {
	s, is := value.(string)
	return value == nil || is && strings.TrimSpace(s) == ""
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for f := range fieldsOf(t) {
		keys = append(keys, key(f))
	}
	slices.Sort(keys)
	return keys
}

func key(f reflect.StructField) string { return f.Tag.Get("mapstructure") }

func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct }

// isValue reports whether t is written as a single value.
func isValue(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
}

func isMapOfSections(t reflect.Type) bool { return t.Kind() == reflect.Map && isSection(t.Elem()) }

func isListOfSections(t reflect.Type) bool { return t.Kind() == reflect.Slice && isSection(t.Elem()) }
