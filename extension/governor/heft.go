// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"math"
	"sync/atomic"
)

const (
	// heftFrom is the size, in bytes of encoding, from which a batch says something about those like it.
	heftFrom = 8 << 10
	// heftUsual is the most heap for a byte of encoding that usual batches take. Empty log records, which are nothing
	// but structs, take 17.
	heftUsual = 10
	// heftMemory is after how many lighter batches a heavy one is forgotten by about two thirds.
	heftMemory = 64
)

// heft is how much heap the batches of a tenant took for a byte of encoding: as much as the heaviest, which is
// forgotten slowly. The zero value has seen none. It is safe for concurrent use.
type heft struct{ bits atomic.Uint64 }

// saw tells of a batch that was decoded.
func (h *heft) saw(memory, wireSize int64) {
	if wireSize < heftFrom {
		return
	}
	for {
		before, now := h.bits.Load(), float64(memory)/float64(wireSize)
		if last := math.Float64frombits(before); now < last {
			now = last - (last-now)/heftMemory
		}
		if h.bits.CompareAndSwap(before, math.Float64bits(now)) {
			return
		}
	}
}

// usual is what it is, if the tenant's batches are usual ones; else 0.
func (h *heft) usual() float64 {
	if r := math.Float64frombits(h.bits.Load()); r <= heftUsual {
		return r
	}
	return 0
}
