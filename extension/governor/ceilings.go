// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/pool"
)

// user is whom a set of ceilings is for.
type user struct{ component, signal string }

// ceilings are what holds for one user. What it did not lower follows the governor's.
type ceilings struct {
	governor *governor
	points   *points
	gate     *pool.Gate
	lowered  admission.Limits

	finishes atomic.Pointer[finishes]
}

// finishes are the last batch that came through, and the last one of another tenant than that. They never change.
type finishes struct{ last, other finish }

// finish is when a tenant's batch came through, by the governor's clock.
type finish struct {
	tenant *member
	at     time.Duration
}

// finished notes that a batch of t ended. Only what was not refused came through. It is noted once in a while, which is
// all that timeouts need to know: while there are two tenants whose batches just did, another one did than any.
func (c *ceilings) finished(t *member, at time.Duration, reason admission.Reason) {
	const while = 10 * time.Millisecond
	if reason != "" || !c.governor.identified.Load() {
		return
	}
	before := c.finishes.Load()
	just := func(f finish) bool { return f.tenant != nil && at-f.at < while }
	if just(before.last) && (before.last.tenant == t || just(before.other)) {
		return
	}
	now := &finishes{finish{t, at}, before.other}
	if before.last.tenant != t {
		now.other = before.last
	}
	c.finishes.CompareAndSwap(before, now) // else somebody has just noted another one
}

// passedBy reports whether a batch of another tenant than t came through since then.
func (c *ceilings) passedBy(t *member, since time.Duration) bool {
	f := c.finishes.Load()
	other := f.last
	if other.tenant == t {
		other = f.other
	}
	return other.tenant != nil && other.at > since
}

// newCeilings returns those that hold for everybody's batches of a signal.
func (g *governor) newCeilings(signal string) *ceilings {
	c := &ceilings{governor: g, points: g.telemetry.of(signal)}
	c.finishes.Store(&finishes{})
	return c
}

var _ admission.Ceilings = (*ceilings)(nil)

// Register implements admission.Governor.
func (g *governor) Register(l admission.Limits) (admission.Ceilings, bool, error) {
	a := g.config.Admission
	timeout := a.ProcessingTimeout
	most := g.maxBatchMemory.Load()
	if err := errors.Join(
		exceeds("max_batch_memory", l.MaxBatchMemory, most, l.MaxBatchMemory > most),
		exceeds("max_batch_items", l.MaxBatchItems, a.MaxBatchItems, l.MaxBatchItems > a.MaxBatchItems),
		exceeds("processing_timeout", l.ProcessingTimeout, timeout, timeout > 0 && l.ProcessingTimeout > timeout),
	); err != nil {
		return nil, false, err
	}
	if l.NamesTenants {
		g.named.Store(true)
		g.tellApart()
	}
	if l.MaxConcurrent == 0 || l.MaxConcurrent > a.MaxConcurrent {
		l.MaxConcurrent = a.MaxConcurrent
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := user{l.Component, l.Signal}
	if c, known := g.mu.users[key]; known {
		return c, false, nil
	}
	c := g.newCeilings(l.Signal)
	c.gate, c.lowered = pool.NewGate(l.MaxConcurrent), l
	g.mu.users[key] = c
	return c, true, nil
}

// exceeds says that a user's limit would raise the governor's.
func exceeds[T any](name string, theirs, ours T, yes bool) error {
	if !yes {
		return nil
	}
	return fmt.Errorf("limits::%s %v exceeds the governor's admission::%s of %v", name, theirs, name, ours)
}

// of returns the ceilings that r is under: its own, or just the governor's.
func (g *governor) of(r *admission.Request) *ceilings {
	if c, ok := r.Ceilings.(*ceilings); ok && c != nil {
		return c
	}
	if c := g.everyone[r.Signal]; c != nil {
		return c
	}
	return g.everyone[""]
}

// judge returns the refusal that any batch like r meets, or nil.
func (c *ceilings) judge(r *admission.Share) *admission.Error {
	if most := c.batchMemory(); r.Memory > most {
		return &admission.Error{Reason: admission.BatchMemory, Observed: r.Memory, Limit: most}
	}
	if most := c.batchItems(); r.Items > most {
		return &admission.Error{Reason: admission.BatchItems, Observed: r.Items, Limit: most}
	}
	return nil
}

func (c *ceilings) batchMemory() int64 {
	return lower(c.lowered.MaxBatchMemory, c.governor.maxBatchMemory.Load())
}

func (c *ceilings) batchItems() int64 {
	return lower(c.lowered.MaxBatchItems, c.governor.config.Admission.MaxBatchItems)
}

// timeout is how long a batch may be worked on; 0 is without end.
func (c *ceilings) timeout() time.Duration {
	if t := c.lowered.ProcessingTimeout; t > 0 {
		return t
	}
	return c.governor.config.Admission.ProcessingTimeout
}

// lower is a user's limit, or the governor's where it has none or the governor's has become lower since.
func lower(theirs, ours int64) int64 {
	if theirs == 0 {
		return ours
	}
	return min(theirs, ours)
}

// ProcessingTimeout implements admission.Ceilings. In observe mode nothing is cut short.
func (c *ceilings) ProcessingTimeout() time.Duration {
	if c.governor.config.Mode == ModeObserve {
		return 0
	}
	return c.timeout()
}

// CountsWireSize implements admission.Ceilings.
func (c *ceilings) CountsWireSize() bool { return c.governor.countsBytes.Load() }

// Outlived implements admission.Ceilings.
func (c *ceilings) Outlived() bool { return c.governor.asynchronous.Load() }

// Memory implements admission.Ceilings.
func (c *ceilings) Memory() (usage, limit int64) {
	usage, _, _ = c.governor.pool.GateStats(c.gate)
	return usage, c.governor.pool.Stats().Capacity
}

// Concurrency implements admission.Ceilings.
func (c *ceilings) Concurrency() (usage, limit int64) {
	_, usage, limit = c.governor.pool.GateStats(c.gate)
	return usage, limit
}
