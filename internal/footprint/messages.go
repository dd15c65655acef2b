// SPDX-License-Identifier: Apache-2.0

package footprint

// kind is what the decoder does with a field of a message.
type kind uint8

const (
	ignored kind = iota // a number or an id inside the struct, or a field that the decoder does not know
	scalar              // a number in a oneof: an object of its own
	str
	octets
	oneof    // a message in a oneof: replaced, not merged, when it comes twice
	part     // a message that is a part of its parent's struct: merged when it comes twice
	messages // a list of messages
	strs     // a list of strings
	varints  // a list of numbers, appended one by one
	fixed    // a list of 64-bit numbers, which fits exactly if it comes packed
	keyRef   // an index into a profile's string table, in place of a key
	valueRef // the same in place of a string value
)

// field is one field of an OTLP message, as far as it takes heap.
type field struct {
	kind  kind
	slot  uint8    // of lists: where a message counts their elements; of a part: its first slot
	items int64    // 1: each element is a span, data point, log record or sample
	heap  int64    // objects with pointers that each occurrence takes
	size  int      // of scalars: bytes of the object
	of    *message // of oneofs, parts and lists of messages
	array *array   // of lists

	number int
	name   string // in JSON, where words may be joined by underscores too
}

// Fields are found by their number up to lastField. Number 0 is illegal, so its
// place is that of the only larger one; unknown fields are all ignored alike.
const (
	lastField    = 16
	legacyField  = 1000 // the scopes of OTLP before 0.15; pdata still moves them to their place
	unknownField = lastField + 1
	maxSlots     = 8
)

// message is an OTLP message: the one description of it that drives the walks
// over protobuf and JSON.
type message struct {
	fields [unknownField + 1]field
	named  []*field // those of fields that take heap
	slots  []slot
	nests  bool // it can contain itself, so its depth is limited
}

// slot is what a message counts the elements of one list for.
type slot struct {
	array *array
	loose bool // the slot before it is a fixed list, this one counts its elements that were not packed
}

// counts are the elements of the lists of one message and its parts.
type counts [maxSlots]int

// messageOf lays a message's fields and slots out.
func messageOf(fields ...field) *message { return new(message).describe(fields...) }

func (m *message) describe(fields ...field) *message {
	for _, f := range fields {
		f.slot = uint8(len(m.slots))
		switch f.kind {
		case part:
			m.slots = append(m.slots, f.of.slots...)
		case fixed:
			m.slots = append(m.slots, slot{}, slot{array: f.array, loose: true})
		case messages, strs, varints:
			m.slots = append(m.slots, slot{array: f.array})
		}
		if len(m.slots) > maxSlots {
			panic("footprint: more lists than counts has room for")
		}
		place := &m.fields[f.number%legacyField]
		*place = f
		m.named = append(m.named, place)
	}
	return m
}

func plain(number int, name string, k kind) field { return field{number: number, name: name, kind: k} }

func embedded(number int, name string, of *message) field {
	return field{number: number, name: name, kind: part, of: of}
}

// pointedTo is a list of pointers to structs of size bytes.
func pointedTo(number int, name string, size int, of *message) field {
	return field{number: number, name: name, kind: messages, heap: object(size), array: pointers, of: of}
}

// item is a pointedTo whose elements count as items of the batch.
func item(number int, name string, size int, of *message) field {
	f := pointedTo(number, name, size, of)
	f.items = 1
	return f
}

func inline(number int, name string, elements *array, of *message) field {
	return field{number: number, name: name, kind: messages, array: elements, of: of}
}

func pairs(number int, name string) field { return inline(number, name, keyValues, keyValue) }

func listOf(number int, name string, k kind, elements *array) field {
	return field{number: number, name: name, kind: k, array: elements}
}

func numeric(number int, name string, size int) field {
	return field{number: number, name: name, kind: scalar, size: size}
}

// boxed is a oneof of a message: heap is the object that says the type and the message's own.
func boxed(number int, name string, of *message, box, size int) field {
	return field{number: number, name: name, kind: oneof, of: of, heap: object(box) + object(size)}
}

// Values contain each other, so they are described after they exist.
var keyValue, anyValue, valueList, keyValueList = nesting(), nesting(), nesting(), nesting()

func nesting() *message { return &message{nests: true} }

func init() {
	keyValue.describe(plain(1, "key", str), embedded(2, "value", anyValue), plain(3, "keyStrindex", keyRef))
	anyValue.describe(
		field{number: 1, name: "stringValue", kind: str, heap: object(sizeStringValue)},
		numeric(2, "boolValue", sizeBoolValue),
		numeric(3, "intValue", sizeNumberValue),
		numeric(4, "doubleValue", sizeNumberValue),
		boxed(5, "arrayValue", valueList, sizeListValue, sizeValueList),
		boxed(6, "kvlistValue", keyValueList, sizeListValue, sizeValueList),
		field{number: 7, name: "bytesValue", kind: octets, heap: object(sizeBytesValue)},
		plain(8, "stringValueStrindex", valueRef),
	)
	valueList.describe(inline(1, "values", anyValues, anyValue))
	keyValueList.describe(pairs(1, "values"))
}
