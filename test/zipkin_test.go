// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	octets "encoding/binary"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// zipkinFormat is one of those in which Zipkin's clients send spans.
type zipkinFormat struct {
	name, path, media string
	list              func(spans [][]byte) []byte
	span              func(n int) []byte
}

const zipkinTime = 1_500_000_000_000_000 // µs

var zipkinFormats = []zipkinFormat{
	{"v2 JSON", "/api/v2/spans", "application/json", jsonList, func(n int) []byte {
		return fmt.Appendf(nil, `{"traceId":"%016x","id":"%016x","parentId":"00000000000000ff","name":"span %d","kind":"CLIENT",`+
			`"timestamp":%d,"duration":7,"localEndpoint":{"serviceName":"checkout"},"tags":{"a tag":"its value"}}`, n+1, n+1, n, zipkinTime)
	}},
	{"v2 protobuf", "/api/v2/spans", "application/x-protobuf", protobufList, func(n int) []byte {
		id := octets.BigEndian.AppendUint64(nil, uint64(n+1))
		b := protobufField(nil, 1, append(make([]byte, 8), id...))
		b = protobufField(b, 3, id)
		b = protobufField(b, 5, fmt.Append(nil, "span ", n))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 6, protowire.Fixed64Type), zipkinTime)
		b = protowire.AppendVarint(protowire.AppendTag(b, 7, protowire.VarintType), 7)
		b = protobufField(b, 8, protobufField(nil, 1, []byte("checkout")))
		return protobufField(b, 11, protobufField(protobufField(nil, 1, []byte("a tag")), 2, []byte("its value")))
	}},
	{"v1 JSON", "/api/v1/spans", "application/json", jsonList, func(n int) []byte {
		const at = `"endpoint":{"serviceName":"checkout"}`
		return fmt.Appendf(nil, `{"traceId":"%016x","id":"%016x","name":"span %d","timestamp":%d,"duration":7,`+
			`"annotations":[{"timestamp":%d,"value":"cs",`+at+`}],"binaryAnnotations":[{"key":"a tag","value":"its value",`+at+`}]}`,
			n+1, n+1, n, zipkinTime, zipkinTime)
	}},
	{"v1 thrift", "/api/v1/spans", "application/x-thrift", thriftList, func(n int) []byte {
		b := thriftNumber(nil, 1, uint64(n+1)) // of the trace
		b = thriftText(b, 3, fmt.Sprint("span ", n))
		b = thriftNumber(b, 4, uint64(n+1))
		b = thriftNumber(b, 10, zipkinTime)
		return append(thriftNumber(b, 11, 7), 0)
	}},
}

func jsonList(spans [][]byte) []byte { return fmt.Appendf(nil, "[%s]", bytes.Join(spans, []byte(","))) }

func protobufList(spans [][]byte) (list []byte) {
	for _, span := range spans {
		list = protobufField(list, 1, span)
	}
	return list
}

func protobufField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// Of thrift's types in its binary protocol these are a number of 64 bits, a string and a struct.
const thriftI64, thriftString, thriftStruct = 10, 11, 12

func thriftList(spans [][]byte) []byte {
	list := octets.BigEndian.AppendUint32([]byte{thriftStruct}, uint32(len(spans)))
	return append(list, bytes.Join(spans, nil)...)
}

func thriftNumber(b []byte, field uint16, v uint64) []byte {
	return octets.BigEndian.AppendUint64(octets.BigEndian.AppendUint16(append(b, thriftI64), field), v)
}

func thriftText(b []byte, field uint16, v string) []byte {
	b = octets.BigEndian.AppendUint16(append(b, thriftString), field)
	return append(octets.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

// body is one of so many spans.
func (f zipkinFormat) body(spans int) []byte {
	all := make([][]byte, spans)
	for n := range all {
		all[n] = f.span(n)
	}
	return f.list(all)
}

// The ways in which a body is packed.
var packings = map[string]func([]byte) []byte{
	"": func(b []byte) []byte { return b },
	"gzip": func(b []byte) []byte {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(b) // a buffer takes everything
		_ = w.Close()
		return packed.Bytes()
	},
	"zlib": func(b []byte) []byte {
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		_, _ = w.Write(b)
		_ = w.Close()
		return packed.Bytes()
	},
}

// zipkinAnswer is what a Zipkin client is told.
type zipkinAnswer struct {
	code                    int
	media, body, retryAfter string
}

// zipkin sends a request to a Zipkin receiver.
func zipkin(t *testing.T, method, url, media, encoding, tenant string, body []byte) zipkinAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": media, "Content-Encoding": encoding, headerName: tenant} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return zipkinAnswer{resp.StatusCode, resp.Header.Get("Content-Type"), string(said), resp.Header.Get("Retry-After")}
}

// startZipkin starts a collector with two Zipkin receivers, one behind the door and one that is not, and returns the
// addresses of both.
func startZipkin(t *testing.T, s *sink, yaml ...string) (c *collector, door, plain string) {
	t.Helper()
	door, plain = freeAddress(t), freeAddress(t)
	c = start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(yaml, fmt.Sprintf(`
receivers: {zipkin: {endpoint: '%s', include_metadata: true, middlewares: [{id: governor}]}, zipkin/plain: {endpoint: '%s'}}
service::pipelines::traces::receivers: [otlp, zipkin, zipkin/plain]`, door, plain))})
	return c, "http://" + door, "http://" + plain
}

// TestZipkinBehindTheDoorIsAsWithoutIt sends everything that Zipkin's clients may, and what they should not, to both
// receivers. What arrives, and what clients are told, is the same.
func TestZipkinBehindTheDoorIsAsWithoutIt(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	s.keep = true
	c, door, plain := startZipkin(t, s)
	for _, f := range zipkinFormats {
		for encoding, pack := range packings {
			s.kept = nil
			for _, to := range []string{door, plain} {
				if a := zipkin(t, http.MethodPost, to+f.path, f.media, encoding, "", pack(f.body(10))); a.code != http.StatusAccepted {
					t.Errorf("%s %s: answered %v", f.name, encoding, a)
				}
			}
			if len(s.kept) != 2 || len(idsOf(s.kept[0])) != 10 || !reflect.DeepEqual(protoOf(t, s.kept[0]), protoOf(t, s.kept[1])) {
				t.Errorf("%s %s: behind the door arrived something else: %v", f.name, encoding, s.kept)
			}
		}
		for what, odd := range map[string]struct {
			method, path, media, encoding string
			body                          []byte
		}{
			"a body that is cut off":   {http.MethodPost, f.path, f.media, "", f.body(10)[:300]},
			"no body":                  {http.MethodPost, f.path, f.media, "", nil},
			"another method":           {http.MethodGet, f.path, f.media, "", nil},
			"another path":             {http.MethodPost, "/zipkin" + f.path, f.media, "", f.body(1)},
			"no media type":            {http.MethodPost, f.path, "", "", f.body(1)},
			"what is no gzip":          {http.MethodPost, f.path, f.media, "gzip", f.body(10)},
			"gzip that is cut off":     {http.MethodPost, f.path, f.media, "gzip", packings["gzip"](f.body(100))[:100]},
			"an encoding nobody knows": {http.MethodPost, f.path, f.media, "zip", f.body(10)},
		} {
			behind, without := zipkin(t, odd.method, door+odd.path, odd.media, odd.encoding, "", odd.body),
				zipkin(t, odd.method, plain+odd.path, odd.media, odd.encoding, "", odd.body)
			if behind != without {
				t.Errorf("%s with %s: answered %v behind the door and %v without", f.name, what, behind, without)
			}
		}
	}
	c.wantNothingLeft()
}

func protoOf(t *testing.T, r request) []byte {
	t.Helper()
	b, err := r.MarshalProto()
	if err != nil {
		t.Error(err)
	}
	return b
}

// TestZipkinIsGovernedByBytes has clients of Zipkin send more than they may, by what their bodies are taken for at
// least, and more items than they may, which only a limiter can count.
func TestZipkinIsGovernedByBytes(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c, door, _ := startZipkin(t, s, byHeaderYAML, `
extensions::governor::admission: {max_batch_memory: 8MiB, max_batch_items: 1000}
extensions::governor::tenants: {allow: [acme, globex], overrides: {acme: {breaker: {breaches: 1000}}, globex: {rate: {requests_per_second: 0.1}}}}`)
	const most, taken = 8 * mib, 6 // times its size
	for _, f := range zipkinFormats {
		media := f.media // of the answer: Zipkin's clients read none, so that it is OTLP's where that has the encoding
		if media == "application/x-thrift" {
			media = "text/plain; charset=utf-8"
		}
		for encoding, pack := range packings {
			body := f.body(most/taken/len(f.span(0)) + 1000)
			a := zipkin(t, http.MethodPost, door+f.path, f.media, encoding, "acme", pack(body))
			if a.code != http.StatusBadRequest || a.retryAfter != "" || !strings.Contains(a.body, "batch_memory: ") ||
				!strings.Contains(a.body, strconv.Itoa(most)) || a.media != media {
				t.Errorf("%s %s: %d bytes are answered %v", f.name, encoding, len(body), a)
			}
		}
		if a := zipkin(t, http.MethodPost, door+f.path, f.media, "", "acme", f.body(1001)); a.code != http.StatusBadRequest {
			t.Errorf("%s: too many spans are answered %v", f.name, a)
		}
		if a := zipkin(t, http.MethodPost, door+f.path, f.media, "", "acme", f.body(100)); a.code != http.StatusAccepted {
			t.Errorf("%s: answered %v", f.name, a)
		}
		if a := zipkin(t, http.MethodPost, door+f.path, f.media, "", "initech", f.body(1)); a.code != http.StatusForbidden {
			t.Errorf("%s: who is not allowed is answered %v", f.name, a)
		}
	}
	all := int64(len(zipkinFormats))
	if n := c.refusalsIn("wire", "batch_memory"); n != all*int64(len(packings)) {
		t.Errorf("%d refused undecoded, want %d", n, all*int64(len(packings)))
	}
	if n := c.refusalsIn("batch", "batch_items"); n != all {
		t.Errorf("%d refused once decoded, want %d", n, all)
	}
	f := zipkinFormats[0]
	if a := zipkin(t, http.MethodPost, door+f.path, f.media, "", "globex", f.body(1)); a.code != http.StatusAccepted {
		t.Errorf("answered %v", a)
	}
	a := zipkin(t, http.MethodPost, door+f.path, f.media, "", "globex", f.body(1))
	if after, err := strconv.Atoi(a.retryAfter); a.code != http.StatusTooManyRequests || err != nil || after < 9 {
		t.Errorf("who comes too often is answered %v", a)
	}
	c.wantNothingLeft()
}
