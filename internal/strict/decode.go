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
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Decode sets the fields of the struct that into points to from conf, by their mapstructure tags, and
// leaves those alone whose keys are absent or empty. Fields are structs of fields, maps of strings to
// structs, lists of structs or of strings, or values: strings, bool, float64, int64 (whole numbers),
// time.Duration, implementations of [encoding.TextUnmarshaler] whose errors continue "must be", and pointers
// to these, which stay nil unless the key is set. The tag strict:"size" makes an int64 take sizes
// ([ParseSize]), strict:"count" makes it take the word unlimited besides numbers ([ParseCount]).
//
// A list with elements replaces what its field held. An element in which nothing is set is dropped from it;
// errors count elements as they are written, from 0.
func Decode(conf *confmap.Conf, into any) error {
	_, errs := decode(conf, reflect.ValueOf(into).Elem(), "")
	return errors.Join(errs...)
}

// decode decodes conf, whose keys have the prefix in errors, and reports whether anything is set in it.
func decode(conf *confmap.Conf, target reflect.Value, prefix string) (set bool, errs []error) {
	for _, fault := range misfits(conf.ToStringMap(), target.Type(), prefix) {
		conf.Delete(strings.TrimPrefix(fault.key, prefix))
		if fault.err != nil {
			errs = append(errs, fault.err)
		}
	}
	written := reflect.New(mirror(target.Type()))
	if err := conf.Unmarshal(written.Interface(), confmap.WithIgnoreUnused()); err != nil {
		return true, append(errs, err)
	}
	return !written.Elem().IsZero(), append(errs, assign(target, written.Elem(), prefix)...)
}

// text is a value as it was written, without the space around it. Being a kind of string makes confmap hand
// over what an environment variable holds and not what YAML makes of it.
type text string

// UnmarshalScalar implements confmap.ScalarUnmarshaler.
func (t *text) UnmarshalScalar(v confmap.ScalarValue) error {
	switch raw := v.GetRaw().(type) {
	case nil:
		*t = ""
	case string:
		*t = text(strings.TrimSpace(raw))
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

// element is a struct in a list as it was written: a configuration of its own, because misfits can be deleted
// from that but not from within a list. It has none if it holds no keys.
type element struct{ conf *confmap.Conf }

// Unmarshal implements confmap.Unmarshaler.
func (e *element) Unmarshal(conf *confmap.Conf) error {
	e.conf = conf
	return nil
}

// UnmarshalScalar implements confmap.ScalarUnmarshaler: what holds no keys is empty, or a misfit already.
func (e *element) UnmarshalScalar(confmap.ScalarValue) error { return nil }

// mirror is t with every value in it replaced by text, and every struct in a list by element.
func mirror(t reflect.Type) reflect.Type {
	var fields []reflect.StructField
	for f := range fieldsOf(t) {
		ft := reflect.TypeFor[text]()
		switch {
		case isSection(f.Type):
			ft = mirror(f.Type)
		case isMapOfSections(f.Type):
			ft = reflect.MapOf(f.Type.Key(), mirror(f.Type.Elem()))
		case isListOfSections(f.Type):
			ft = reflect.TypeFor[[]element]()
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
			errs = append(errs, assignList(to, from, path)...)
			continue
		}
		s := from.String()
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

// assignList parses the elements that were written into to, and leaves out those in which nothing is set.
func assignList(to, written reflect.Value, path string) (errs []error) {
	if written.Len() > 0 {
		to.Set(reflect.MakeSlice(to.Type(), 0, written.Len()))
	}
	for i := range written.Len() {
		one, set := reflect.New(to.Type().Elem()).Elem(), false
		switch from := written.Index(i).Interface().(type) {
		case text:
			one.SetString(string(from))
			set = from != ""
		case element:
			if from.conf == nil {
				continue
			}
			var faults []error
			set, faults = decode(from.conf, one, path+confmap.KeyDelimiter+strconv.Itoa(i)+confmap.KeyDelimiter)
			errs = append(errs, faults...)
		}
		if set {
			to.Set(reflect.Append(to, one))
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
	case to.Kind() == reflect.Bool:
		if s != "true" && s != "false" {
			return errors.New("true or false")
		}
		to.SetBool(s == "true")
		return nil
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
