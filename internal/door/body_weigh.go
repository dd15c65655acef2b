// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// weighBody returns what a whole body of a media type will take once it is decoded, without decoding it. Its
// size stands for that in protobuf, which a body in JSON exceeds. It may wait for a heavy place, and fails if
// there is none.
//
// What turns out not to be OTLP in protobuf is left to the receiver, which knows what else may come to that
// path; it gets no further with it than this did. JSON is refused: that decoder has no limits of its own.
func (d *Door) weighBody(
	ctx context.Context, signal, media string, body []byte, t *trust,
) (share admission.Share, work int64, err error) {
	size := int64(len(body))
	share = admission.Share{Memory: unknownRatio * size, WireSize: size}
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
		return share, size, nil
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
		share.Memory = max(share.Memory, w.Memory)
	}
	return share, share.Memory / heapRatio, nil
}
