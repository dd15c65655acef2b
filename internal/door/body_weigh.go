// SPDX-License-Identifier: Apache-2.0

package door

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// weighBody returns what a whole body of a media type will take once it is decoded, without decoding it. Its
// size stands for that in protobuf, which a body in JSON exceeds.
//
// What turns out not to be OTLP in protobuf is left to the receiver, which knows what else may come to that
// path; it gets no further with it than this did. JSON is not: that decoder has no limits of its own.
func (d *Door) weighBody(signal, media string, body []byte) (admission.Share, error) {
	share := admission.Share{Memory: unknownRatio * int64(len(body)), WireSize: int64(len(body))}
	s, known := weighed[signal]
	if !known {
		return share, nil
	}
	var w footprint.Weight
	var err error
	switch media {
	case protobufType:
		if w, err = footprint.Wire(s, body, d.Memory.MaxBatch()); err != nil {
			share.Memory = max(share.Memory, w.Memory)
			return share, nil
		}
	case jsonType:
		if w, err = footprint.JSON(s, body, d.Memory.MaxBatch()); err != nil {
			return share, status.Errorf(codes.InvalidArgument, "the request cannot be decoded: %v", err)
		}
	default:
		return share, nil
	}
	share.Memory, share.Items = w.Memory, w.Items
	return share, nil
}
