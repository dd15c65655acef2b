// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"encoding/binary"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// encoder writes random requests in every way that protobuf allows: fields in any order and repeated, numbers
// longer than they need be, lists packed in pieces or not at all, unknown fields and groups.
type encoder struct {
	*rand.Rand
	references bool // to the four strings that the dictionary has at least
}

// drawRequest draws a seed only: to draw every choice would take seconds.
func drawRequest(r *rapid.T, s Signal) []byte {
	e := encoder{rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0)), s == ProfilesRequest}
	body := e.message(requests[s], 5)
	if e.references {
		d := encoder{Rand: e.Rand}.message(dictionaryMessage, 2)
		for range 4 {
			d = e.bytes(d, stringTableField, make([]byte, e.upTo(40)))
		}
		body = e.bytes(body, 2, d)
	}
	return body
}

func (e encoder) upTo(n int) int { return e.IntN(n + 1) }

// message draws a message whose values nest at most depth deep.
func (e encoder) message(m *message, depth int) []byte {
	var b []byte
	named := false
	for range e.upTo(4) {
		if e.upTo(9) == 0 {
			b = e.unknown(b)
		}
		if len(m.named) == 0 {
			continue
		}
		f := m.named[e.upTo(len(m.named)-1)]
		if m == keyValue && f.kind != part { // a key comes one way or the other
			if named || f.kind == keyRef && e.upTo(3) > 0 {
				continue
			}
			named = true
		}
		switch {
		case f.of == dictionaryMessage, m.nests && depth == 0 && f.kind == oneof, f.kind == valueRef && !e.references:
			continue
		}
		b = e.field(b, f, depth)
	}
	return b
}

func (e encoder) field(b []byte, f *field, depth int) []byte {
	switch f.kind {
	case str, octets, strs:
		return e.bytes(b, f.number, make([]byte, e.length()))
	case scalar:
		if f.name == "boolValue" || f.name == "intValue" {
			return e.number(e.number(b, uint64(f.number)<<3|wireVarint), uint64(e.upTo(300)))
		}
		return binary.LittleEndian.AppendUint64(e.number(b, uint64(f.number)<<3|wire64), 1)
	case keyRef, valueRef:
		index := 0
		if e.references {
			index = e.upTo(3)
		}
		return e.number(e.number(b, uint64(f.number)<<3|wireVarint), uint64(index))
	case oneof:
		return e.bytes(b, f.number, e.message(f.of, depth-1))
	case part:
		return e.bytes(b, f.number, e.message(f.of, depth))
	case messages:
		for range e.length() % 40 {
			b = e.bytes(b, f.number, e.message(f.of, depth))
			if depth < 4 { // one is enough of what is deep inside
				break
			}
			depth--
		}
		for range e.length() { // small ones, for lists to be long
			b = e.bytes(b, f.number, nil)
		}
		return b
	default:
		return e.numbers(b, f)
	}
}

// length is mostly short.
func (e encoder) length() int { return e.upTo([]int{3, 3, 20, 70, 300}[e.upTo(4)]) }

func (e encoder) numbers(b []byte, f *field) []byte {
	wire := uint64(wireVarint)
	one := func(b []byte) []byte { return e.number(b, uint64(e.upTo(300))) }
	if f.kind == fixed {
		wire = wire64
		one = func(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, 1) }
	}
	if e.upTo(1) == 0 {
		for range e.length() {
			b = one(e.number(b, uint64(f.number)<<3|wire))
		}
		return b
	}
	var packed []byte
	for range e.length() {
		packed = one(packed)
	}
	return e.bytes(b, f.number, packed)
}

func (e encoder) bytes(b []byte, number int, content []byte) []byte {
	b = e.number(b, uint64(number)<<3|wireBytes)
	return append(e.number(b, uint64(len(content))), content...)
}

// number appends a varint, at times with more bytes than it needs.
func (e encoder) number(b []byte, v uint64) []byte {
	b = binary.AppendUvarint(b, v)
	for range e.upTo(20) - 17 {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

func (e encoder) unknown(b []byte) []byte {
	tag := uint64(17+e.upTo(500)) << 3
	switch e.upTo(4) {
	case 0:
		return e.number(e.number(b, tag|wireVarint), 300)
	case 1:
		return binary.LittleEndian.AppendUint64(e.number(b, tag|wire64), 1)
	case 2:
		return binary.LittleEndian.AppendUint32(e.number(b, tag|wire32), 1)
	case 3:
		return e.bytes(b, int(tag>>3), []byte("unknown"))
	default: // pdata takes the number for the end of the group
		return e.number(e.number(e.number(b, tag|wireGroup), tag|wireVarint), 1)
	}
}
