// SPDX-License-Identifier: Apache-2.0

// Package strict decodes a component's configuration without guessing.
//
// The Collector's own decoding hands over what YAML made of a value: 1.9 becomes 1 where a whole number is
// wanted, 2^63 becomes negative, and an environment variable that holds 0512 arrives as 330. Here every
// value is read as it was written, and what is not exactly what its key takes is refused by an error
// that names the key, what was found and what is allowed. An empty value means that the key is not set,
// so that "${env:NAME:-}" can leave any key at its default. All faults of a configuration are reported
// at once.
//
// One thing cannot be seen from here: a number that stands in the YAML itself has been parsed before, so
// a literal 0512 is the 330 that YAML 1.1 says it is.
package strict

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Decode sets the fields of the struct that into points to from conf, by their mapstructure tags, and
// leaves those alone whose keys are absent or empty. Fields are structs of fields, maps of strings to
// structs, lists of strings, or strings, float64, int64 (whole numbers), time.Duration, implementations of
// [encoding.TextUnmarshaler] whose errors continue "must be", and pointers to these, which stay nil unless the key is set. The tag strict:"size" makes an int64 take sizes
// ([ParseSize]), strict:"count" makes it take the word unlimited besides numbers ([ParseCount]).
func Decode(conf *confmap.Conf, into any) error {
	target := reflect.ValueOf(into).Elem()
	var errs []error
	for _, fault := range misfits(conf.ToStringMap(), target.Type(), "") {
		conf.Delete(fault.key)
		if fault.err != nil {
			errs = append(errs, fault.err)
		}
	}
	written := reflect.New(mirror(target.Type()))
	if err := conf.Unmarshal(written.Interface(), confmap.WithIgnoreUnused()); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, assign(target, written.Elem(), "")...)...)
}

// misfit is a key that is not to be decoded: with an error, or because it is empty where keys are wanted.
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
		_, isList := value.([]any)
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
		case !isValue(ft) && isEmpty(value):
			faults = append(faults, misfit{path, nil})
		case isSection(ft):
			report("must hold keys (%s), got %v", strings.Join(keysOf(ft), ", "), value)
		case isMapOfSections(ft):
			report("must hold names with keys (%s) each, got %v", strings.Join(keysOf(ft.Elem()), ", "), value)
		case ft.Kind() == reflect.Slice && !isList:
			report("must be a list such as [a, b], got %v", value)
		case isMap:
			report("must be a single value, got keys (%s)", strings.Join(slices.Sorted(maps.Keys(sub)), ", "))
		case isList && ft.Kind() != reflect.Slice:
			report("must be a single value, got the list %v", value)
		}
	}
	return faults
}

// text is a value as it was written. Being a kind of string makes confmap hand over what an environment
// variable holds and not what YAML makes of it.
type text string

// UnmarshalScalar implements confmap.ScalarUnmarshaler.
func (t *text) UnmarshalScalar(v confmap.ScalarValue) error {
	switch raw := v.GetRaw().(type) {
	case nil:
		*t = ""
	case string:
		*t = text(raw)
	case float64: // never written like a whole number, which YAML says it is not
		*t = text(strconv.FormatFloat(raw, 'g', -1, 64))
		if whole.MatchString(string(*t)) {
			*t += ".0"
		}
	default:
		*t = text(fmt.Sprint(raw))
	}
	return nil
}

// mirror is t with every value in it replaced by text.
func mirror(t reflect.Type) reflect.Type {
	var fields []reflect.StructField
	for f := range fieldsOf(t) {
		ft := reflect.TypeFor[text]()
		switch {
		case isSection(f.Type):
			ft = mirror(f.Type)
		case isMapOfSections(f.Type):
			ft = reflect.MapOf(f.Type.Key(), mirror(f.Type.Elem()))
		case f.Type.Kind() == reflect.Slice:
			ft = reflect.TypeFor[[]text]()
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: ft, Tag: f.Tag})
	}
	return reflect.StructOf(fields)
}

// assign parses what was written into the fields of target.
func assign(target, written reflect.Value, prefix string) []error {
	var errs []error
	for f := range fieldsOf(target.Type()) {
		to, from, path := target.FieldByIndex(f.Index), written.FieldByName(f.Name), prefix+key(f)
		switch {
		case isSection(f.Type):
			errs = append(errs, assign(to, from, path+confmap.KeyDelimiter)...)
			continue
		case isMapOfSections(f.Type):
			if from.Len() > 0 {
				to.Set(reflect.MakeMap(f.Type))
			}
			for it := from.MapRange(); it.Next(); {
				one := reflect.New(f.Type.Elem()).Elem()
				errs = append(errs, assign(one, it.Value(), path+confmap.KeyDelimiter+it.Key().String()+confmap.KeyDelimiter)...)
				to.SetMapIndex(it.Key(), one)
			}
			continue
		case f.Type.Kind() == reflect.Slice:
			if from.Len() > 0 {
				to.Set(reflect.MakeSlice(f.Type, 0, from.Len()))
			}
			for i := range from.Len() {
				if s := strings.TrimSpace(from.Index(i).String()); s != "" {
					to.Set(reflect.Append(to, reflect.ValueOf(s)))
				}
			}
			continue
		}
		s := strings.TrimSpace(from.String())
		if s == "" {
			continue
		}
		value := to
		if to.Kind() == reflect.Pointer {
			value = reflect.New(f.Type.Elem()).Elem()
		}
		if err := parse(s, value, f.Tag.Get("strict")); err != nil {
			errs = append(errs, fmt.Errorf("'%s' must be %w, got %s", path, err, shown(s)))
			continue
		}
		if to.Kind() == reflect.Pointer {
			to.Set(value.Addr())
		}
	}
	return errs
}

// parse sets to, or returns what it would have taken.
func parse(s string, to reflect.Value, as string) error {
	if u, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(s))
	}
	var n int64
	var err error
	switch {
	case as == "size":
		n, err = ParseSize(s)
	case as == "count":
		n, err = ParseCount(s)
	case to.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		if d, err = time.ParseDuration(s); err != nil {
			err = errors.New("a duration such as 500ms or 30s")
		}
		n = int64(d)
	case to.Kind() == reflect.Int64:
		n, err = parseWhole(s)
	case to.Kind() == reflect.Float64:
		f, err := parseFraction(s)
		if err == nil {
			to.SetFloat(f)
		}
		return err
	case to.Kind() == reflect.String:
		to.SetString(s)
		return nil
	default:
		panic("strict: no way to decode a " + to.Type().String())
	}
	if err == nil {
		to.SetInt(n)
	}
	return err
}

// shown is s as an error may show it: on one line and not longer than one.
func shown(s string) string {
	const most = 64
	if q := strconv.Quote(s); len(q) != len(s)+2 || len(s) > most {
		return strconv.Quote(s[:min(len(s), most)])
	}
	return s
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
