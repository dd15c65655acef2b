// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"encoding/binary"
	"math/bits"
)

// Wire types of protobuf.
const (
	wireVarint   = 0
	wire64       = 1
	wireBytes    = 2
	wireGroup    = 3
	wireGroupEnd = 4
	wire32       = 5
)

// walk is one walk over a body.
type walk struct {
	memory, items int64
	most          int64
	strings       *stringTable // that references are resolved in; nil where pdata leaves them
	failed        failure
}

// end is the weight once the walk is over, by itself or because a step said no.
func (w *walk) end(complete bool) (Weight, error) {
	if w.failed != none {
		return Weight{}, failures[w.failed]
	}
	return Weight{Memory: w.memory, Items: w.items, AtLeast: !complete || w.memory > w.most}, nil
}

// fail ends the walk.
func (w *walk) fail(why failure) bool {
	w.failed = why
	return false
}

// message walks a message with lists of its own. Like all of the walk's steps, it is false where the walk has
// to end: on an error, or because memory has passed most.
func (w *walk) message(m *message, b []byte, depth int) bool {
	if m.bare(b) {
		return w.memory <= w.most
	}
	var c counts
	if !w.fields(m, b, &c, 0, depth) {
		return false
	}
	w.lists(m, &c)
	return w.memory <= w.most
}

// lists weighs the arrays of a message's lists.
func (w *walk) lists(m *message, c *counts) {
	for i := range m.slots {
		switch s := &m.slots[i]; {
		case c[i] == 0:
		case s.array == nil: // fixed and packed
			w.memory += flat(8 * c[i])
		case s.loose:
			w.memory += s.array.grown(c[i-1] + c[i])
		default:
			w.memory += s.array.grown(c[i])
		}
	}
}

// fields walks the fields of a message and counts the elements of its lists from slot first on.
func (w *walk) fields(m *message, b []byte, c *counts, first uint8, depth int) bool {
	if m.nests {
		if depth >= maxDepth {
			return w.fail(nested)
		}
		depth++
	}
	for i := 0; i < len(b); {
		tag := uint64(b[i])
		var f *field
		if i++; tag >= 1<<3 && tag < 0x80 { // field would find it too, with a call that takes a sixth of the walk
			f = &m.fields[tag>>3]
		} else {
			if tag, i = varint(b, i-1); i < 0 {
				return w.fail(noRequest)
			}
			if f = m.field(tag); f == nil {
				return w.fail(noRequest)
			}
		}
		if tag&7 != wireBytes {
			start := i
			if i = skip(b, i, tag&7); i < 0 {
				return w.fail(noRequest)
			}
			switch f.kind {
			case scalar:
				w.memory += flat(f.size)
			case varints:
				c[f.in(first)]++
			case fixed:
				c[f.in(first)+1]++
			case keyRef, valueRef:
				w.reference(f.kind, b, start)
			}
			continue
		}
		from, to := i+1, len(b)+1
		if i < len(b) && b[i] < 0x80 { // content would find it too, with a call that takes a fifth of the walk
			to = from + int(b[i])
		}
		if to > len(b) {
			if from, to = content(b, i); to < 0 {
				return w.fail(noRequest)
			}
		}
		i = to
		w.memory += f.heap
		switch f.kind {
		case str:
			w.memory += chars(to - from)
		case messages:
			c[f.in(first)]++
			w.items += f.items
			if f.of == keyValue {
				if heap, ok := usual(b[from:to]); ok {
					w.memory += heap
					continue
				}
			}
			if !w.message(f.of, b[from:to], depth) {
				return false
			}
		case oneof:
			if !w.message(f.of, b[from:to], depth) {
				return false
			}
		case part:
			if f.of.bare(b[from:to]) {
				continue
			}
			if !w.fields(f.of, b[from:to], c, f.in(first), depth) {
				return false
			}
		case octets:
			w.memory += flat(to - from)
		case strs:
			c[f.in(first)]++
			w.memory += chars(to - from)
		case varints:
			c[f.in(first)] += varintsIn(b[from:to])
		case fixed:
			c[f.in(first)] += (to - from) / 8
		}
	}
	return true
}

// bare reports whether there is nothing to walk in a message. Bombs are made of such.
func (m *message) bare(b []byte) bool { return len(b) == 0 && !m.nests }

// in is the slot of a list where those of its message begin at first.
func (f *field) in(first uint8) uint8 { return (first + f.slot) % maxSlots }

// field is the field that a tag announces, nil if it is illegal. Numbers are cut to 32 bits, like pdata's.
func (m *message) field(tag uint64) *field {
	switch number := int32(tag >> 3); {
	case number <= 0:
		return nil
	case number <= lastField:
		return &m.fields[number]
	case number == legacyField:
		return &m.fields[0]
	default:
		return &m.fields[unknownField]
	}
}

// usual is the heap of an attribute in the form that encoders give it: a key and a value of one field, all
// shorter than 128 bytes. Most of a batch is attributes, and most of these are such. The SDKs' encoders write the key
// first, pdata's the value.
func usual(b []byte) (heap int64, ok bool) {
	const keyTag, valueTag = 1<<3 | wireBytes, 2<<3 | wireBytes
	if len(b) < 4 || b[1] >= 0x80 {
		return 0, false
	}
	second := 2 + int(b[1])
	if len(b) < second+2 || b[second+1] >= 0x80 || int(b[second+1]) != len(b)-second-2 {
		return 0, false
	}
	key, value := b[2:second], b[second+2:]
	switch {
	case b[0] == keyTag && b[second] == valueTag:
	case b[0] == valueTag && b[second] == keyTag:
		key, value = value, key
	default:
		return 0, false
	}
	if len(value) < 2 {
		return 0, false
	}
	heap = chars(len(key))
	switch value[0] {
	case 1<<3 | wireBytes:
		n := len(value) - 2
		return heap + object(sizeStringValue) + chars(n), int(value[1]) == n
	case 2<<3 | wireVarint:
		return heap + flat(sizeBoolValue), len(value) == 2 && value[1] < 0x80
	case 3<<3 | wireVarint:
		_, end := varint(value, 1)
		return heap + flat(sizeNumberValue), end == len(value)
	case 4<<3 | wire64:
		return heap + flat(sizeNumberValue), len(value) == 9
	}
	return 0, false
}

// content is where the content of a field begins and ends whose length stands at i. It ends before 0 if the
// body does.
func content(b []byte, i int) (from, to int) {
	n, from := uint64(0), i+1
	if i < len(b) {
		n = uint64(b[i])
	}
	if i >= len(b) || n >= 0x80 {
		n, from = varint(b, i)
	}
	if from < 0 || n > uint64(len(b)-from) {
		return 0, -1
	}
	return from, from + int(n)
}

// varint reads a number and the position after it, which is negative if there is none.
func varint(b []byte, i int) (v uint64, next int) {
	for shift := 0; shift < 64 && i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, -1
}

// varintsIn counts the numbers in a packed list: the bytes that end one.
func varintsIn(b []byte) (n int) {
	const end = 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(^binary.LittleEndian.Uint64(b) & end)
	}
	for _, c := range b {
		n += int(^c >> 7)
	}
	return n
}

// skip is the position after a field that is no string, negative if there is none. Of a group pdata takes the
// first number or string for its end, and what follows for fields of the message around it; so does this.
func skip(b []byte, i int, wire uint64) int {
	for depth := 0; ; {
		switch wire {
		case wireVarint:
			_, i = varint(b, i)
			return i
		case wire64:
			return within(b, i+8)
		case wire32:
			return within(b, i+4)
		case wireBytes:
			_, i = content(b, i)
			return i
		case wireGroup:
			depth++
		case wireGroupEnd:
			if depth--; depth == 0 {
				return i
			}
		}
		if depth <= 0 { // no wire type, or the end of no group
			return -1
		}
		var tag uint64
		if tag, i = varint(b, i); i < 0 || int32(tag>>3) <= 0 {
			return -1
		}
		wire = tag & 7
	}
}

func within(b []byte, i int) int {
	if i > len(b) {
		return -1
	}
	return i
}
