// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"encoding/base64"
)

// block is what an object of less than 16 bytes without pointers takes when no other shares its 16: the JSON
// decoder's own short-lived strings come between those that stay.
const block = 16

// JSON weighs an OTLP export request in JSON like Wire does one in protobuf. The strings that a profile's
// attributes refer to are not counted again.
//
// A body that gives an error must not be decoded, though pdata might: it reads some of what is no JSON, takes
// an empty key for the end of an object, and nests without limit.
func JSON(s Signal, body []byte, most int64) (Weight, error) {
	state := flat(sizeState)
	w := jsonWalk{walk: walk{memory: bare(s) - state + alone(state), most: bound(most)}, b: body}
	return w.end(w.message(requests[s], 0))
}

// jsonWalk is a walk over JSON that has come to b[i].
type jsonWalk struct {
	walk
	b []byte
	i int
}

// message walks an object, or null, with lists of its own. It is false where the walk has to end.
func (w *jsonWalk) message(m *message, depth int) bool {
	var c counts
	if !w.fields(m, &c, 0, depth) {
		return false
	}
	w.lists(m, &c)
	for i := range m.slots {
		if a := m.slots[i].array; a != nil && !a.scan && c[i] > 0 {
			w.memory += alone(a.grown(c[i])) - a.grown(c[i])
		}
	}
	return w.memory <= w.most
}

// fields walks the fields of an object and counts the elements of its lists from slot first on.
func (w *jsonWalk) fields(m *message, c *counts, first uint8, depth int) bool {
	if m.nests {
		if depth >= maxDepth {
			return w.fail(nested)
		}
		depth++
	}
	for more := w.begin('{', '}'); more; more = w.more('}') {
		f, ok := w.key(m)
		if !ok || !w.field(f, c, (first+f.slot)%maxSlots, depth) {
			return false
		}
	}
	return w.failed == none
}

// field walks the value of a field.
func (w *jsonWalk) field(f *field, c *counts, slot uint8, depth int) bool {
	switch f.kind {
	case str:
		w.memory += f.heap + alone(chars(w.str()))
	case octets:
		w.memory += f.heap + alone(flat(base64.StdEncoding.DecodedLen(w.str())))
	case oneof:
		w.memory += f.heap
		return w.message(f.of, depth)
	case part:
		return w.fields(f.of, c, slot, depth)
	case messages:
		for more := w.begin('[', ']'); more; more = w.more(']') {
			c[slot]++
			w.memory += f.heap
			w.items += f.items
			if !w.message(f.of, depth) {
				return false
			}
		}
	case strs:
		for more := w.begin('[', ']'); more; more = w.more(']') {
			c[slot]++
			w.memory += alone(chars(w.str()))
		}
	case fixed: // never packed here
		slot++
		fallthrough
	case varints:
		for more := w.begin('[', ']'); more; more = w.more(']') {
			c[slot]++
			w.skip()
		}
	case scalar, valueRef:
		w.memory += block
		w.skip()
	default:
		w.skip()
	}
	return w.failed == none
}

func alone(heap int64) int64 {
	if heap > 0 && heap < block {
		return block
	}
	return heap
}

// key finds the field that a key names, up to its value. Escapes, which none of the names needs, are not
// looked into but refused.
func (w *jsonWalk) key(m *message) (*field, bool) {
	if w.next() != '"' {
		return nil, w.fail(noRequest)
	}
	key := w.b[w.i+1:]
	n := bytes.IndexByte(key, '"')
	if n <= 0 || bytes.IndexByte(key[:n], '\\') >= 0 {
		return nil, w.fail(noRequest)
	}
	w.i += n + 2
	if w.next() != ':' {
		return nil, w.fail(noRequest)
	}
	w.i++
	for _, f := range m.named {
		if names(key[:n], f.name) {
			return f, true
		}
	}
	return &m.fields[unknownField], true
}

// names is true if the key is the name as it is or with its words joined by underscores.
func names(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	i := 0
	for _, c := range []byte(name) {
		if c < 'a' && i < len(key) && key[i] == '_' {
			c += 'a' - 'A'
			i++
		}
		if i == len(key) || key[i] != c {
			return false
		}
		i++
	}
	return i == len(key)
}
