// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oddBodies are requests that pdata decodes though nothing encodes them so.
var oddBodies = map[string][]byte{
	"a field number of more than 32 bits": append([]byte{0x8a, 0x80, 0x80, 0x80, 0x80, 0x01}, wrap(wrap(nil, 2), 2)[1:]...),
	"an overlong tag and length":          append([]byte{0x8a, 0x80, 0x00, 0x84, 0x80, 0x00}, wrap(wrap(nil, 2), 2)...),
	"a group that a number ends":          append([]byte{0xfb, 0x01, 0x08, 0x01}, wrap(nil, 2, 2, 1)...),
	"a group of groups":                   append([]byte{0xfb, 0x01, 0xfb, 0x01, 0xfc, 0x01, 0xfc, 0x01}, wrap(nil, 2, 2, 1)...),
	"a resource in two parts":             wrap(append(wrap(bytes.Repeat(wrap(nil, 1), 256), 1), wrap(wrap(nil, 1), 1)...), 1),
	"a scope in two parts":                wrap(append(wrap(bytes.Repeat(wrap(nil, 3), 256), 1), wrap(wrap(nil, 3), 1)...), 2, 1),
	"an old client's scopes":              wrap(nil, 2, legacyField, 1),
	"a value that comes twice":            wrap(append(wrap(wrap(nil, 1), 6), wrap(wrap(nil, 1), 5)...), 2, 9, 2, 2, 1),
	"an index where none is resolved":     wrap([]byte{0x40, 0x05}, 2, 9, 2, 2, 1),
	"an attribute with a long length":     wrap([]byte{0x0a, 0x01, 'k', 0x12, 0x84, 0x00, 0x0a, 0x02, 'v', 'v'}, 9, 2, 2, 1),
	"numbers packed, alone and packed":    wrap(append(append(wrap(make([]byte, 80), 6), append([]byte{0x31}, make([]byte, 8)...)...), wrap(make([]byte, 16), 6)...), 1, 9, 2, 2, 1),
	"a dictionary in two parts":           append(append(wrap([]byte{0x12, 0x02, 0x40, 0x00}, 1, 1, 1), wrap([]byte("a long string"), 5, 2)...), wrap(nil, 5, 2)...),
	"a number that an array replaces":     attribute(append([]byte{0x18, 0x05}, wrap(bytes.Repeat(wrap(nil, 1), 20), 5)...)),
	"a boolean that an array replaces":    attribute(append([]byte{0x10, 0x01}, wrap(bytes.Repeat(wrap(nil, 1), 20), 5)...)),
	"a key whose length is overlong":      wrap(overlongKey(), 9, 2, 2, 1),
}

// attribute is a span with that value.
func attribute(value []byte) []byte {
	return wrap(append([]byte{0x0a, 0x01, 'k'}, wrap(value, 2)...), 9, 2, 2, 1)
}

// overlongKey is an attribute with an array of 59 values. If the first byte of its key's length were the length,
// the key would end before the last four bytes, which are a boolean.
func overlongKey() []byte {
	array := append([]byte{0x2a, 0xf6, 0x00}, bytes.Repeat(wrap(nil, 1), 59)...)
	value := append(array, 0xfa, 0x01, 0x04, 0x12, 0x02, 0x10, 0x01)
	return append([]byte{0x0a, 0x84, 0x00, 'k', 'k', 'k', 'k', 0x12, 0x80, 0x01}, value...)
}

func TestOddBodiesWeighNoLess(t *testing.T) {
	for name, body := range oddBodies {
		t.Run(name, func(t *testing.T) {
			decoded := 0
			decoded += oddBody(t, tracesSignal, body)
			decoded += oddBody(t, metricsSignal, body)
			decoded += oddBody(t, logsSignal, body)
			decoded += oddBody(t, profilesSignal, body)
			assert.Positive(t, decoded, "pdata decodes it as nothing, so it shows nothing")
		})
	}
}

// oddBody is 1 if the body is a request of that signal.
func oddBody[T any](t *testing.T, s signal[T], body []byte) int {
	decoded, err := s.receive(body)
	if err != nil {
		return 0
	}
	assertNotLess(t, s, body, decoded)
	return 1
}

// TestReferencesAreFoundInALongStringTable: beyond 1024 strings not every one's place is remembered.
func TestReferencesAreFoundInALongStringTable(t *testing.T) {
	var attributes, dictionary []byte
	for i := range 3000 {
		dictionary = append(dictionary, wrap(make([]byte, i%200), stringTableField)...)
		if i%7 == 0 {
			reference := append([]byte{0x18}, binary.AppendUvarint(nil, uint64(i))...)
			attributes = append(attributes, wrap(append(reference, wrap(append([]byte{0x40}, binary.AppendUvarint(nil, uint64(2999-i))...), 2)...), 1)...)
		}
	}
	body := append(wrap(attributes, 1, 1), wrap(dictionary, 2)...)
	decoded, err := profilesSignal.receive(body)
	require.NoError(t, err)
	w, err := Wire(ProfilesRequest, body, 0)
	require.NoError(t, err)
	assert.Equal(t, Profiles(decoded), w.Memory)
}

// TestReferencesCostNoMoreThanTheBodyIsLong: once they do, each weighs like the longest string.
func TestReferencesCostNoMoreThanTheBodyIsLong(t *testing.T) {
	table := stringTable{stride: 1, steps: 100_000}
	dictionary := bytes.Repeat(wrap(nil, stringTableField), 1_000_000)
	table.index(wrap(append(dictionary, wrap([]byte("the longest"), stringTableField)...), 2))
	for range 1000 {
		table.heap(999_999)
	}
	assert.Zero(t, table.steps)
	assert.Equal(t, chars(len("the longest")), table.heap(999_999))
	assert.Zero(t, table.heap(1_000_001), "an index out of range is nothing")
}

// jsonBodies are requests in JSON, with the spans that they have; each is decoded and compared.
var jsonBodies = []struct {
	name, body string
	spans      int64
}{
	{"empty spans", `{"resourceSpans":[{"scopeSpans":[{"spans":[{},{},{}]}]}]}`, 3},
	{"null spans", `{"resourceSpans":[{"scopeSpans":[{"spans":[null,null]}]}]}`, 2},
	{"null in every place", `{"resourceSpans":[null,{"resource":null,"schemaUrl":null,"scopeSpans":[null,{"scope":null,"spans":null}]}]}`, 0},
	{"null values", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[null,{"key":null,"value":null},{"value":{"stringValue":null}},{"value":{"arrayValue":null}},{"value":{"kvlistValue":{"values":[null]}}}]}]}]}]}`, 1},
	{"names with underscores", `{"resource_spans":[{"schema_url":"https://a","scope_spans":[{"spans":[{"trace_state":"a=b,c=d","attributes":[{"value":{"string_value":"text"}},{"value":{"array_value":{"values":[{"int_value":"5"}]}}}]}]}]}]}`, 1},
	{"space everywhere", " {\t\"resourceSpans\" : [ { \"scopeSpans\" :\r\n[ {\"spans\": [ { } , { \"name\" : \"a name\" } ] } ] } ] } ", 2},
	{"an array in two parts", `{"resourceSpans":[{"scopeSpans":[{"spans":[{},{}],"spans":[{}]}]}]}`, 3},
	{"escapes", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"\"\\\/\b\f\n\r\t and \u20ac\u00e4\ud83d\ude00\ud800"}]}]}]}`, 1},
	{"bytes", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"value":{"bytesValue":"AAECAwQFBgcICQoLDA0ODxAREhM="}}]}]}]}]}`, 1},
	{"numbers as strings", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"1","kind":"SPAN_KIND_SERVER","attributes":[{"value":{"intValue":"-1"}},{"value":{"doubleValue":"1e-7"}}]}]}]}]}`, 1},
	{"unknown keys", `{"x":[{"":{"spans":[{}]}}],"resourceSpans":[{"scopeSpans":[{"more":{"spans":[{}]},"spans":[{"what":true,"ever":[1.5e3,false,null,"]}"]}]}]}]}`, 1},
	{"something behind the end", `{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}}]`, 1},
}

func TestJSONBodiesWeighNoLess(t *testing.T) {
	for _, c := range jsonBodies {
		decoded, err := tracesSignal.fromJSON([]byte(c.body))
		require.NoError(t, err, c.name)
		w, err := JSON(TracesRequest, []byte(c.body), 0)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.spans, w.Items, c.name)
		assert.GreaterOrEqual(t, w.Memory, Traces(decoded), c.name)
		assert.LessOrEqual(t, w.Memory, 2*Traces(decoded), c.name)
	}
}

// noJSON are bodies that the walk over JSON refuses, though pdata takes most of them for requests, some with
// spans where no reader of JSON would look for them.
var noJSON = map[string]string{
	"nothing":                      ``,
	"a string":                     `"resourceSpans"`,
	"no brace":                     `,"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}`,
	"no bracket":                   `{"resourceSpans":,{"scopeSpans":[{"spans":[{}]}]}]}`,
	"half objects":                 `{"resourceSpans":[{"scopeSpans":[{"spans":[},},}]}]}]}`,
	"an empty key":                 `{"resourceSpans":[{"scopeSpans":[{"spans":[{"":[{},{},{}]}]}]}]}`,
	"an escaped key":               `{"resource\u0053pans":[{"scopeSpans":[{"spans":[{}]}]}]}`,
	"null behind a number":         `{"resourceSpans":[{"scopeSpans":[{"spans":[{"flags":12null,{}]}]}]}`,
	"null for a key":               `{"resourceSpans":[{"scopeSpans":[{"spans":[{"flags":1,null:{}]}]}]}`,
	"a comma too many":             `{"resourceSpans":[{},]}`,
	"an object for an array":       `{"resourceSpans":{}}`,
	"an array for an object":       `{"resourceSpans":[[]]}`,
	"a number for a name":          `{"resourceSpans":[{"schemaUrl":5}]}`,
	"a string without end":         `{"resourceSpans":[{"schemaUrl":"abc`,
	"a string that ends in an \\":  `{"resourceSpans":[{"schemaUrl":"abc\`,
	"an unknown value without end": `{"unknown":[{`,
	"no value":                     `{"unknown":}`,
	"a word":                       `{"unknown":maybe}`,
	"a word like null":             `{"unknown":nope}`,
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	for name, body := range noJSON {
		_, err := JSON(TracesRequest, []byte(body), 0)
		assert.ErrorIs(t, err, errNoRequest, name)
	}
}

func TestANegativeIndexIsNothing(t *testing.T) {
	reference := append([]byte{0x40}, binary.AppendUvarint(nil, ^uint64(0))...)
	body := wrap(wrap(reference, 2), 1, 1, 1)
	w, err := Wire(ProfilesRequest, append(body, wrap(nil, 5, 2)...), 0)
	assert.NoError(t, err)
	assert.Positive(t, w.Memory)
}

// TestNumbersOneByOneWeighWhatAppendingThemLeaves: the decoded walk takes them to have come packed.
func TestNumbersOneByOneWeighWhatAppendingThemLeaves(t *testing.T) {
	const points, counts = 100, 260
	point := bytes.Repeat(append([]byte{6<<3 | wire64}, make([]byte, 8)...), counts)
	body := wrap(bytes.Repeat(wrap(point, 1), points), 9, 2, 2, 1)
	measured, said := heapOf(t, body, metricsSignal.receive, Metrics, 4<<20)
	w, err := Wire(MetricsRequest, body, 0)
	require.NoError(t, err)
	assert.InEpsilon(t, measured, w.Memory, margin)
	assert.Greater(t, w.Memory, said)

	decoded, err := metricsSignal.receive(body)
	require.NoError(t, err)
	json, err := metricsSignal.toJSON(decoded)
	require.NoError(t, err)
	w, err = JSON(MetricsRequest, json, 0)
	require.NoError(t, err)
	assert.InEpsilon(t, measured, w.Memory, margin)
}

func TestEscapesByNumberWeighTheirUTF8(t *testing.T) {
	for _, r := range []rune{0, 'A', 0x7f, 0x80, 'ä', 0x7ff, 0x800, '€', 0xd7ff, 0xffff} {
		digits := fmt.Appendf(nil, "%04x", r)
		assert.Equal(t, utf8.RuneLen(r), utf8Len(digits), "%s", digits)
		assert.Equal(t, utf8.RuneLen(r), utf8Len(bytes.ToUpper(digits)), "%s", digits)
	}
}
