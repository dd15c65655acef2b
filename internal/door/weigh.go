// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"

	"github.com/otel-governor/otel-governor/internal/footprint"
)

// unknownRatio is how much heap a byte of a body takes whose signal is not known: what usual batches take at
// most. The limiter settles what it really is.
const unknownRatio = 6

// weighed are the signals whose bodies can be weighed.
var weighed = map[string]footprint.Signal{
	"traces":   footprint.TracesRequest,
	"metrics":  footprint.MetricsRequest,
	"logs":     footprint.LogsRequest,
	"profiles": footprint.ProfilesRequest,
}

// estimate returns the heap that a body in protobuf is taken for where it need not be walked, which costs about
// a tenth of decoding it: one that is too long to be admitted whatever it holds, one of which nothing is known,
// and one whose worst case is easily had.
func (d *Door) estimate(ctx context.Context, signal string, size int64) (memory int64, ok bool) {
	if size > d.Memory.MaxBatch() {
		return size, true
	}
	s, known := weighed[signal]
	if !known {
		return unknownRatio * size, true
	}
	worst := footprint.WorstCase(s, int(size))
	return worst, d.Easy != nil && worst <= d.Easy(ctx)
}
