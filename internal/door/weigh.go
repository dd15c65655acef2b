// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// unknownRatio is how much heap a byte of a body takes of which nothing is known: what usual batches take at most.
// The limiter settles what it really is.
const unknownRatio = 6

// weighed are the signals whose bodies can be weighed.
var weighed = map[string]footprint.Signal{
	"traces":   footprint.TracesRequest,
	"metrics":  footprint.MetricsRequest,
	"logs":     footprint.LogsRequest,
	"profiles": footprint.ProfilesRequest,
}

// estimate returns the heap that a body in protobuf is taken for where it need not be walked, which costs about
// a tenth of decoding it: one of which nothing is known, one whose worst case is easily had, and one of a tenant
// whose batches are usual ones, with what it owes for its worst case in t.
func (d *Door) estimate(ctx context.Context, signal string, size int64, t *trust) (memory int64, ok bool) {
	s, known := weighed[signal]
	if !known {
		return unknownRatio * size, true
	}
	worst := footprint.WorstCase(s, int(size))
	if d.Ease == nil {
		return worst, false
	}
	e := d.Ease(ctx)
	switch {
	case worst <= e.Worst:
		return worst, true
	case e.Ratio > 0 && size <= heavyFrom && d.trust(t, worst, e.Trusted):
		return int64(e.Ratio * float64(size)), true
	default:
		return worst, false
	}
}

// tooLong asks for a lease on what nobody has weighed, since it is longer on the wire than the most that could be
// admitted a moment ago: to be refused like any other batch, and told its length. Where more can be admitted by now
// it is refused all the same, and let in only where nothing is enforced.
func (d *Door) tooLong(ctx context.Context, r admission.Request, most int64) (admission.Lease, error) {
	lease, err := d.Governor.Admit(ctx, r)
	if err != nil || d.Observe {
		return lease, err
	}
	err = lease.Refuse(ctx, admission.BatchMemory, r.Memory, most)
	lease.Release(err)
	return nil, err
}

// enough is the heap at which weighing stops. It is twice what could ever be admitted: that may have become more by the
// time that a lease is asked for, and what was weighed in part only must not be let in for that.
func (d *Door) enough() int64 { return 2 * d.Memory.MaxBatch() }

// trust is what the request of a tenant may take at worst that was taken at its word, as debt in the pool until it has
// been answered: so that the word is worth something, and a broken one harms nobody.
type trust int64

// trust takes a request at its word, unless what such may take at worst would be too much in all.
func (d *Door) trust(t *trust, worst, most int64) bool {
	if d.trusted.Add(worst) > most {
		d.trusted.Add(-worst)
		return false
	}
	*t = trust(worst)
	d.Memory.Owe(worst)
	return true
}

// distrust ends that. It may be called more than once, and for a request that was weighed.
func (d *Door) distrust(t *trust) {
	if owed := int64(*t); owed != 0 {
		d.trusted.Add(-owed)
		d.Memory.Owe(-owed)
		*t = 0
	}
}
