// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// weighBody returns what the whole body of r will take once it is decoded, without decoding it, and how much work that
// is. Its size stands for that in protobuf, which a body in JSON exceeds. It may wait for a heavy place, and fails if
// there is none.
//
// What turns out not to be OTLP in protobuf is left to the receiver, which knows what else may come to that
// path; it gets no further with it than this did. JSON is refused: that decoder has no limits of its own.
func (d *Door) weighBody(
	r *http.Request, signal string, body []byte, t *trust,
) (share admission.Share, work int64, err error) {
	ctx, media, size := r.Context(), mediaType(r), int64(len(body))
	share.WireSize = size
	s, known := weighed[signal]
	walk, weighing, in := footprint.Wire, size/walkShare, d.heavy
	switch {
	case known && media == protobufType:
		if memory, ok := d.estimate(ctx, signal, size, t); ok {
			share.Memory = memory
			return share, size, nil
		}
	case known && media == jsonType:
		walk, weighing = footprint.JSON, jsonTimes*size
		if weighing <= in.from {
			in = d.light
		}
	default:
		err := d.work(ctx, in, weighing, func() { share.Memory = foreign(r.URL.Path, media, body) }, d.refusing(signal))
		return share, share.Memory / heapRatio, err
	}
	var w footprint.Weight
	var malformed error
	if err := d.work(ctx, in, weighing, func() { w, malformed = walk(s, body, d.enough()) }, d.refusing(signal)); err != nil {
		return share, 0, err
	}
	switch {
	case malformed == nil:
		share.Memory, share.Items = w.Memory, w.Items
	case media == jsonType:
		return share, 0, status.Errorf(codes.InvalidArgument, "the request cannot be decoded: %v", malformed)
	default:
		share.Memory = max(foreign(r.URL.Path, media, body), w.Memory)
	}
	return share, share.Memory / heapRatio, nil
}

// foreign is the heap that a body is taken for which is not OTLP's: what usual ones take at most, or what the
// Collector's Zipkin receiver can be made to take by this one. That receiver takes any path and any media type for
// Zipkin's JSON that it does not know.
func foreign(path, media string, body []byte) int64 {
	memory := unknownRatio * int64(len(body))
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '[' {
		memory = max(memory, footprint.ZipkinJSON(body))
	}
	switch {
	case media == protobufType:
		memory = max(memory, footprint.ZipkinProtobuf(body))
	case media == thriftType && strings.Contains(path, "api/v1/spans"):
		memory = max(memory, footprint.ZipkinThrift(body))
	}
	return memory
}
