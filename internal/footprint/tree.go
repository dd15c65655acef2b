// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

// list is any of pdata's slices.
type list[T any] interface {
	Len() int
	At(int) T
}

// ofResource is what one resource sent, whatever the signal.
type ofResource interface {
	Resource() pcommon.Resource
	SchemaUrl() string
}

// ofScope is what one scope of a resource sent.
type ofScope interface {
	Scope() pcommon.InstrumentationScope
	SchemaUrl() string
}

// each weighs a slice of pointers to structs of size bytes and what each holds.
// A type parameter's methods are called through a dictionary, which would double
// the cost of an empty span: what a batch has most of (spans, log records, number
// points, attributes) is walked by its own type instead, and calls each only for
// what is there.
func each[L list[T], T any](l L, size int, holds func(T) int64) int64 {
	n := l.Len()
	heap := pointed(n, size)
	for i := range n {
		heap += holds(l.At(i))
	}
	return heap
}

// tree weighs what the signals have in common: resources of size bytes, their
// scopes and, by records, what each scope holds.
func tree[RL list[R], SL list[S], R ofResource, S ofScope](resources RL, size int, scopes func(R) SL, records func(S) int64) int64 {
	return each(resources, size, func(r R) int64 {
		return resource(r.Resource()) + text(r.SchemaUrl()) +
			each(scopes(r), sizeScope, func(s S) int64 {
				return scope(s.Scope()) + text(s.SchemaUrl()) + records(s)
			})
	})
}

func resource(r pcommon.Resource) int64 {
	return attributes(r.Attributes()) +
		each(entity.ResourceEntityRefs(r), sizeEntityRef, func(e entity.EntityRef) int64 {
			return text(e.SchemaUrl()) + text(e.Type()) + stringList(e.IdKeys()) + stringList(e.DescriptionKeys())
		})
}

func stringList(s pcommon.StringSlice) int64 {
	n := s.Len()
	heap := texts.grown(n)
	for i := range n {
		heap += text(s.At(i))
	}
	return heap
}

func scope(s pcommon.InstrumentationScope) int64 {
	return text(s.Name()) + text(s.Version()) + attributes(s.Attributes())
}

// text is the heap of a string.
func text(s string) int64 { return chars(len(s)) }

// chars is the heap of a string of n bytes.
func chars(n int) int64 {
	if n < len(short) {
		return int64(short[n])
	}
	return object(n)
}

func attributes(m pcommon.Map) int64 {
	n := m.Len()
	if n == 0 {
		return 0
	}
	heap := keyValues.grown(n)
	for k, v := range m.All() {
		if s := v.Str(); s != "" { // asked first, since most are strings; of another type it is empty
			heap += text(k) + stringValue + text(s)
		} else {
			heap += text(k) + value(v)
		}
	}
	return heap
}

// value is the heap behind a value: the object that says its type, and its
// content. An empty value has neither.
func value(v pcommon.Value) int64 {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return stringValue + text(v.Str())
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return flat(sizeNumberValue)
	case pcommon.ValueTypeBool:
		return flat(sizeBoolValue)
	case pcommon.ValueTypeMap:
		return object(sizeListValue) + object(sizeValueList) + attributes(v.Map())
	case pcommon.ValueTypeSlice:
		return object(sizeListValue) + object(sizeValueList) + values(v.Slice())
	case pcommon.ValueTypeBytes:
		return object(sizeBytesValue) + flat(v.Bytes().Len())
	}
	return 0
}

func values(s pcommon.Slice) int64 {
	n := s.Len()
	heap := anyValues.grown(n)
	for i := range n {
		heap += value(s.At(i))
	}
	return heap
}
