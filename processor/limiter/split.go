// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// maxTenants is how many tenants of one batch are told apart. Nobody honest has as many.
const maxTenants = 64

// split divides a batch among the tenants that its resources name by this attribute; those that name none
// by a string are the default tenant's, and so are those too many. The largest share comes first, and bears what belongs to
// no resource. Bytes on the wire are divided like those of the heap.
func split(all admission.Share, attribute string, resources func(footprint.Each)) (admission.Share, []admission.Share) {
	var shares []admission.Share
	index := map[string]int{}
	rest := all.Memory
	resources(func(r pcommon.Resource, memory, items int64) {
		name := ""
		if v, ok := r.Attributes().Get(attribute); ok && v.Type() == pcommon.ValueTypeStr {
			name = v.Str() // what is nested would have to be unfolded, before anybody admitted it
		}
		rest -= memory
		i, known := index[name]
		if !known && len(shares) >= maxTenants {
			name = ""
			i, known = index[name]
		}
		if !known {
			i = len(shares)
			index[name] = i
			shares = append(shares, admission.Share{Tenant: name})
		}
		shares[i].Memory += memory
		shares[i].Items += items
	})
	if len(shares) == 0 {
		return all, nil
	}
	slices.SortStableFunc(shares, func(a, b admission.Share) int { return cmp.Compare(b.Memory, a.Memory) })
	shares[0].Memory += max(0, rest)
	left := all.WireSize
	for i := range shares[1:] {
		s := &shares[i+1]
		s.WireSize = int64(float64(all.WireSize) * float64(s.Memory) / float64(max(1, all.Memory)))
		left -= s.WireSize
	}
	shares[0].WireSize = left
	return shares[0], shares[1:]
}
