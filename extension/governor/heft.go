// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/otel-governor/otel-governor/admission"
)

const (
	// heftFrom is the size, in bytes of encoding, from which a batch says something about those like it.
	heftFrom = 8 << 10
	// heftUsual is the most heap for a byte of encoding that usual batches take. Those that are made to be heavy take
	// ten times as much.
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

// weighed tells whose estimate c is what the batch really is.
func (c *claim) weighed(r *admission.Request) {
	if c.tenant == nil {
		return
	}
	memory := r.Memory
	for i := range r.Others {
		memory += r.Others[i].Memory
	}
	c.tenant.Value.heft.saw(memory, c.wireSize)
}

// usual is what it is, if the tenant's batches are usual ones; else 0.
func (h *heft) usual() float64 {
	if r := math.Float64frombits(h.bits.Load()); r <= heftUsual {
		return r
	}
	return 0
}

// usual returns how much heap the batches of the tenant that ctx speaks for lately took for a byte of encoding, and what
// those who are taken at that word may take at worst: a part of what is free, so that they come to no harm all at once.
func (g *governor) usual(ctx context.Context) (ratio float64, most int64) {
	const part = 4
	t := g.tenants.Default()
	if g.identified.Load() {
		t, _ = g.member(ctx, "")
		defer t.Unpin()
	}
	if g.counted(t) {
		return 0, 0
	}
	st := g.pool.Stats()
	return t.Value.heft.usual(), (st.Capacity - st.Held - st.Carried - st.Owed) / part
}
