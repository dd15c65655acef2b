// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"encoding/binary"
)

// What the Collector's Zipkin receiver can be made to take at most, at its peak between the body and the spans that
// it makes of it: bytes of heap for each of what can be counted without reading a body closely, and for each byte of
// it. Measured in v0.165.1 with bodies made for the worst, and rounded up: 518 for an element of JSON, 276 for a field
// of protobuf, 527 for a span of thrift and 80 for a byte of it, each an annotation. Usual spans take a tenth to a half
// of that.
const (
	zipkinElement, zipkinElementByte = 544, 3
	zipkinField, zipkinFieldByte     = 288, 2
	zipkinSpan, zipkinSpanByte       = 544, 84
)

// ZipkinJSON is the heap that no body of Zipkin's spans in JSON exceeds while it is decoded and after that. It counts
// the commas, wherever they stand.
func ZipkinJSON(body []byte) int64 {
	elements := 1 + bytes.Count(body, []byte{','})
	return int64(elements)*zipkinElement + int64(len(body))*zipkinElementByte
}

// ZipkinProtobuf is the same of Zipkin's protobuf. It counts the spans and their fields, as far as the body is one.
func ZipkinProtobuf(body []byte) int64 {
	const spansAndTheirs = 2
	return int64(fieldsIn(body, spansAndTheirs))*zipkinField + int64(len(body))*zipkinFieldByte
}

// ZipkinThrift is the same of a list of Zipkin's spans in thrift's binary protocol, which announces their number. What
// they consist of is not looked at.
func ZipkinThrift(body []byte) int64 {
	const head = 5 // the type and the number of the list's elements
	spans := 0
	if len(body) >= head {
		spans = min(int(binary.BigEndian.Uint32(body[1:])), len(body)) // each has one byte at least
	}
	return int64(spans)*zipkinSpan + int64(len(body))*zipkinSpanByte
}

// fieldsIn counts the fields of a message, and of those in it to a depth, up to what is no protobuf. Those of groups
// are taken for fields of the message around.
func fieldsIn(b []byte, depth int) (n int) {
	for i := 0; i < len(b); n++ {
		var tag uint64
		if tag, i = varint(b, i); i < 0 {
			return n
		}
		from := i
		switch tag & 7 {
		case wireGroup, wireGroupEnd:
		case wireBytes:
			if from, i = content(b, i); i >= 0 && depth > 1 {
				n += fieldsIn(b[from:i], depth-1)
			}
		default:
			i = skip(b, i, tag&7)
		}
		if i < 0 {
			return n + 1
		}
	}
	return n
}
