// SPDX-License-Identifier: Apache-2.0

package door

import (
	"mime"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The encodings of OTLP over HTTP and of Zipkin, and what everything else is answered in.
const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
	thriftType   = "application/x-thrift"
	textType     = "text/plain; charset=utf-8"
)

// mediaType is that of r's body, or empty.
func mediaType(r *http.Request) string {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// answer writes a refusal as an OTLP receiver writes its own: a Status in the encoding of the request, the
// delay as Retry-After in whole seconds, rounded up so that nobody comes back too early. Senders of other
// formats get the message as text. Under critical pressure the connection is closed, so that a load balancer
// finds another collector for the next request.
func (d *Door) answer(w http.ResponseWriter, r *http.Request, refusal error) {
	s, _ := status.FromError(refusal)
	h := w.Header()
	if d.Critical() {
		h.Set("Connection", "close")
	}
	for _, detail := range s.Details() {
		if retry, is := detail.(*errdetails.RetryInfo); is {
			seconds := (retry.GetRetryDelay().AsDuration() + time.Second - 1) / time.Second
			h.Set("Retry-After", strconv.FormatInt(max(1, int64(seconds)), 10))
		}
	}
	content, body := textType, []byte(s.Message())
	switch mediaType(r) {
	case protobufType:
		if b, err := proto.Marshal(s.Proto()); err == nil {
			content, body = protobufType, b
		}
	case jsonType:
		if b, err := protojson.Marshal(s.Proto()); err == nil {
			content, body = jsonType, b
		}
	}
	h.Set("Content-Type", content)
	h.Set("X-Content-Type-Options", "nosniff") // the message is not a page, whatever is in it
	w.WriteHeader(httpCode(s.Code()))
	_, _ = w.Write(body) // a client that went away reads nothing
}

// httpCode is what the OTLP receiver makes of the gRPC codes that refusals have.
func httpCode(c codes.Code) int {
	switch c {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable, codes.Canceled:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
