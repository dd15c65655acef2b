// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/encoding/protowire"
)

// What an attacker gets out of a body is counted at no less than it was measured to take, and what usual clients send
// at no more than they can bear.
func TestZipkinBodiesAreTakenForTheirWorst(t *testing.T) {
	times := func(s string, n int) []byte { return []byte(strings.Repeat(s, n)) }
	const many = 10_000
	const usualJSON = `{"traceId":"0000000000000001","id":"0000000000000001","parentId":"00000000000000ff","name":"GET /cart/{id}",` +
		`"kind":"CLIENT","timestamp":1500000000000000,"duration":7,"localEndpoint":{"serviceName":"checkout","ipv4":"10.0.0.1"},` +
		`"tags":{"http.method":"GET","http.path":"/cart/4711","http.status_code":"200","component":"net/http"}},`
	for name, tt := range map[string]struct {
		of           func([]byte) int64
		body         []byte
		least, usual int64 // times the size; 0: not asked
	}{
		"numbers in v1 JSON":             {ZipkinJSON, times("0,", many), 80, 0},
		"objects in v1 JSON":             {ZipkinJSON, times("{},", many), 62, 0},
		"spans in v2 JSON":               {ZipkinJSON, times(`{"id":"1"},`, many), 46, 0},
		"usual spans in JSON":            {ZipkinJSON, times(usualJSON, many), 0, 25},
		"empty spans in protobuf":        {ZipkinProtobuf, times("\x0a\x00", many), 109, 0},
		"empty tags in protobuf":         {ZipkinProtobuf, times("\x0a\x02\x5a\x00", many), 139, 0},
		"empty tags behind a group":      {ZipkinProtobuf, append([]byte("\x0b\x08\x01\x0c"), times("\x0a\x02\x5a\x00", many)...), 138, 0},
		"annotations of one span":        {ZipkinProtobuf, protowire.AppendBytes([]byte{0x0a}, times("\x52\x00", many)), 64, 0},
		"empty spans in thrift":          {ZipkinThrift, append([]byte{12, 0, 0, many >> 8, many & 0xff}, make([]byte, many)...), 531, 0},
		"more spans than there is":       {ZipkinThrift, append([]byte{12, 0xff, 0xff, 0xff, 0xff}, make([]byte, many)...), 531, 0},
		"annotations of a span":          {ZipkinThrift, append([]byte{12, 0, 0, 0, 1, 15, 0, 6, 12, 0, 0, many >> 8, many & 0xff}, make([]byte, many+1)...), 81, 0},
		"usual spans, 400 bytes each":    {ZipkinThrift, append([]byte{12, 0, 0, 0, 25}, make([]byte, many)...), 0, 86},
		"what is too short to be thrift": {ZipkinThrift, make([]byte, 4), 0, 84},
		"nothing":                        {ZipkinProtobuf, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			size, got := int64(len(tt.body)), tt.of(tt.body)
			assert.GreaterOrEqual(t, got, tt.least*size)
			if tt.usual > 0 {
				assert.LessOrEqual(t, got, tt.usual*size)
			}
		})
	}
}

// FuzzZipkinProtobuf holds the count of fields to protowire: none of what that finds is missed.
func FuzzZipkinProtobuf(f *testing.F) {
	for _, body := range []string{"", "\x0a\x00", "\x0a\x02\x5a\x00", "\x0b\x08\x01\x0c\x0a\x00", "\x0a\x80", "\x0d\x00"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		assert.GreaterOrEqual(t, fieldsIn(body, 2), protowireFields(body, 2))
		assert.LessOrEqual(t, fieldsIn(body, 2), 2*len(body))
	})
}

func protowireFields(b []byte, depth int) (n int) {
	for len(b) > 0 {
		number, kind, head := protowire.ConsumeTag(b)
		if head < 0 {
			return n
		}
		size := protowire.ConsumeFieldValue(number, kind, b[head:])
		if size < 0 {
			return n
		}
		n++
		if content, ok := protowire.ConsumeBytes(b[head:]); kind == protowire.BytesType && ok > 0 && depth > 1 {
			n += protowireFields(content, depth-1)
		}
		b = b[head+size:]
	}
	return n
}
