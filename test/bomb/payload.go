// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bytes"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

// Payload names what a client sends, again and again the same bytes.
type Payload string

// The payloads. All but Usual are bombs: as small as they can be on the wire for what they become in memory.
const (
	Usual   Payload = "usual spans" // 512 with 8 attributes each are 162 kB
	Spans   Payload = "empty spans" // as pdata writes them: 22 bytes of heap for one on the wire
	Bare    Payload = "bare spans"  // as an attacker does: 112
	Logs    Payload = "empty log records"
	Metrics Payload = "empty metrics"
	Nested  Payload = "nested log" // one record whose body is an array in an array in an array
	Name    Payload = "long name"  // one span, which takes no more memory than it says
)

// path is where a payload goes over HTTP, method over gRPC.
func (p Payload) path() (path, method string) {
	const service = "/opentelemetry.proto.collector.%[1]s.v1.%[2]sService/Export"
	switch p {
	case Logs, Nested:
		return "/v1/logs", fmt.Sprintf(service, "logs", "Logs")
	case Metrics:
		return "/v1/metrics", fmt.Sprintf(service, "metrics", "Metrics")
	default:
		return "/v1/traces", fmt.Sprintf(service, "trace", "Trace")
	}
}

// protobuf returns an export request of about that many bytes.
func (p Payload) protobuf(size int) ([]byte, error) {
	switch p {
	case Usual:
		return ptraceotlp.NewExportRequestFromTraces(usual(size * 512 / 162_000)).MarshalProto()
	case Spans: // status, parent id and span id, all of them empty
		return request(field(2, []byte{0x7a, 0, 0x22, 0, 0x12, 0, 0x0a, 0}), size), nil
	case Name:
		return field(1, field(2, field(2, field(5, bytes.Repeat([]byte("a"), size))))), nil
	case Bare, Metrics:
		return request(field(2, nil), size), nil
	case Logs: // span id, trace id and body, all of them empty
		return request(field(2, []byte{0x52, 0, 0x4a, 0, 0x2a, 0}), size), nil
	case Nested:
		return field(1, field(2, field(2, field(5, nested(size))))), nil
	default:
		return nil, fmt.Errorf("no payload %q", p)
	}
}

// Packed returns such a request in an encoding of gRPC.
func (p Payload) Packed(size int, encoding string) ([]byte, error) {
	body, err := p.protobuf(size)
	if err != nil {
		return nil, err
	}
	return pack(encoding, body)
}

// json returns the same in JSON, where what is empty is {}.
func (p Payload) json(size int) ([]byte, error) {
	array := func(item string) string {
		return "[" + strings.Repeat(item+",", size/(len(item)+1)) + item + "]"
	}
	switch p {
	case Usual:
		return ptraceotlp.NewExportRequestFromTraces(usual(size * 512 / 162_000)).MarshalJSON()
	case Spans, Bare:
		return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":` + array("{}") + `}]}]}`), nil
	case Metrics:
		return []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":` + array("{}") + `}]}]}`), nil
	case Logs:
		return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":` + array("{}") + `}]}]}`), nil
	case Nested:
		const open, shut = `{"arrayValue":{"values":[`, `]}}`
		n := size / len(open+shut)
		return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` +
			strings.Repeat(open, n) + strings.Repeat(shut, n) + `}]}]}]}`), nil
	default:
		return nil, fmt.Errorf("no payload %q", p)
	}
}

// usual returns n spans with 8 attributes each.
func usual(n int) ptrace.Traces {
	data := ptrace.NewTraces()
	r := data.ResourceSpans().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "checkout")
	spans := r.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		s := spans.AppendEmpty()
		s.SetName("GET /cart/{id}")
		s.SetTraceID([16]byte{1, byte(i >> 8), byte(i)})
		s.SetSpanID([8]byte{1, byte(i >> 8), byte(i)})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		for a := range 8 {
			s.Attributes().PutStr(fmt.Sprintf("attribute.of.it.%d", a), fmt.Sprintf("value %d", i))
		}
	}
	return data
}

// field returns a field with a length.
func field(number protowire.Number, content []byte) []byte {
	return append(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(content))), content...)
}

// request returns as many of one item as give size bytes, as one scope of one resource: the numbers of those
// fields are the same for all signals.
func request(item []byte, size int) []byte {
	return field(1, field(2, bytes.Repeat(item, size/len(item))))
}

// nested returns an array in an array in an array, of about size bytes. It is made from its end: every level
// is longer than the next.
func nested(size int) []byte {
	b := make([]byte, size)
	at := len(b)
	prepend := func(number protowire.Number) {
		head := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(b)-at))
		at -= len(head)
		copy(b[at:], head)
	}
	for at > 20 {
		prepend(1) // the value of the array
		prepend(5) // the array of the value
	}
	return b[at:]
}
