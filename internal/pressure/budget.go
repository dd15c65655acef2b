// SPDX-License-Identifier: Apache-2.0

package pressure

import "math"

// Unbounded is the budget of a process whose heap nothing bounds.
const Unbounded = math.MaxInt64

// Budget returns the bytes of live heap that Go can hold in a process limited to limit bytes, when
// headroom of what it can hold is left to garbage. It is never negative, and [Unbounded] if nothing
// bounds the heap: no memory limit for Go, and either no limit for the process or no garbage collection.
//
// With a memory limit Go collects ever more often as live heap approaches it: at a headroom of a quarter
// it marks three bytes for every byte allocated. The factor 0.97 is what the collector itself leaves
// before its limit. Without one, Go lets garbage grow to GOGC percent of live heap, and a tenth of the
// process's limit is left to what is not heap.
func Budget(r Runtime, limit int64, headroom float64) int64 {
	return r.holds(limit, 1-headroom, 0.9)
}

// CriticalLive returns the bytes of live heap from which a collection leaves Go too little to go on with: 0.87
// of what it can hold at all, where it marks nearly seven bytes for every byte allocated (a heap at 0.78 of a cgroup's
// limit of 256 MiB was killed, which is 0.87 of what Go was allowed at 0.9 of it). Without a memory limit for Go, it is where
// garbage takes the process to 0.95 of its limit. It is never below the budget, and [Unbounded] where that is.
func CriticalLive(r Runtime, limit int64, headroom float64) int64 {
	return max(Budget(r, limit, headroom), r.holds(limit, 0.87, 0.95))
}

// holds returns the bytes of live heap that take Go to a share of its own memory limit or, without one, the
// process to a share of limit.
func (r Runtime) holds(limit int64, ofOwn, ofLimit float64) int64 {
	switch {
	case r.MemoryLimit < math.MaxInt64:
		return max(0, int64(ofOwn*0.97*float64(r.MemoryLimit-r.Overhead)))
	case limit > 0 && r.GCPercent >= 0:
		return max(0, int64(ofLimit*float64(limit)/(1+float64(r.GCPercent)/100))-r.Overhead)
	default:
		return Unbounded
	}
}
