// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"cmp"
	"slices"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// usage is what one tenant holds, and may.
type usage struct {
	name                 string
	bytes, batches       int64
	maxBytes, maxBatches int64
}

// usages returns what the tenants that count hold, the most first: as many as most by name, and the rest
// as one.
func (g *governor) usages(most int, counts func(*member) bool) []usage {
	var named []usage
	index := map[string]int{} // one name may be two tenants': an authenticated one, and who claims to be it
	others := usage{name: tenant.OtherName}
	capacity := g.pool.Stats().Capacity
	for t := range g.tenants.All() {
		bytes, batches := g.pool.AccountStats(&t.Value.pool)
		if !counts(t) {
			others.bytes += bytes
			others.batches += batches
			continue
		}
		limits := g.limits(t)
		u := usage{t.Shown(), bytes, batches, capacity, g.config.Admission.MaxConcurrent}
		if i, known := index[u.name]; known {
			named[i].bytes += bytes
			named[i].batches += batches
			continue
		}
		index[u.name] = len(named)
		if limits.Fraction > 0 {
			u.maxBytes = share(capacity, limits.Fraction)
		}
		if limits.Slots > 0 {
			u.maxBatches = min(u.maxBatches, limits.Slots)
		}
		named = append(named, u)
	}
	slices.SortFunc(named, func(a, b usage) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.batches, a.batches), cmp.Compare(a.name, b.name))
	})
	for _, u := range named[min(len(named), most):] {
		others.bytes += u.bytes
		others.batches += u.batches
	}
	others.maxBytes, others.maxBatches = capacity, g.config.Admission.MaxConcurrent
	return append(named[:min(len(named), most)], others)
}
