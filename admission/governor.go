// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"time"
)

// Governor decides which batches a process may hold, and for how long they wait. All methods are safe
// for concurrent use.
type Governor interface {
	// Identify returns the tenant that ctx speaks for. It is ok if what the governor is configured to look
	// at names one; else it is the default tenant.
	Identify(ctx context.Context) (tenant string, ok bool)

	// Register announces a user of the governor and the ceilings it lowers for what passes through it. A
	// ceiling that would raise what the governor allows is an error that states both figures;
	// MaxConcurrent alone is capped without a word. Users that register under the same component and
	// signal share their ceilings, and first is true for one of them only: it falls to that one to report
	// usage and limits.
	Register(l Limits) (c Ceilings, first bool, err error)

	// Check refuses r by the state of things alone: under critical pressure, or while its tenant's breaker
	// is open or all of the tenant's places are taken. It never waits and takes nothing, so that a nil error
	// promises nothing. It is for whoever has not read the batch yet: what r says of its size is not looked at.
	Check(ctx context.Context, r Request) error

	// Admit grants r a place and its memory together, or refuses. It may wait, no longer than a quarter
	// of the time that ctx has left. On success the caller must release the lease. On failure nothing
	// is held and the error is an [*Error]; if ctx ended, the error also wraps [context.Cause] of it.
	Admit(ctx context.Context, r Request) (Lease, error)
}

// Limits are what one user of the governor asks to be held to, beyond what holds for everybody. The zero
// value of a field leaves the governor's own ceiling in place.
type Limits struct {
	Component         string        // the user's component id, as in its telemetry
	Signal            string        // traces, metrics, logs or profiles
	MaxBatchMemory    int64         // bytes of heap in one batch
	MaxBatchItems     int64         // spans, data points, log records or samples in one batch
	MaxConcurrent     int64         // batches at work at once; more of them wait
	ProcessingTimeout time.Duration // time under a lease, after which the batch's context ends
	NamesTenants      bool          // the user's requests may name tenants, see Share
}

// Ceilings are what holds for one registered user: its own limits where it set any, the governor's where
// it did not. All methods are safe for concurrent use.
type Ceilings interface {
	// ProcessingTimeout is how long a batch may be worked on; 0 means without end.
	ProcessingTimeout() time.Duration
	// Memory returns the bytes of the batches at work through this user, and the bytes that it may hold.
	Memory() (usage, limit int64)
	// Concurrency returns the number of batches at work through this user, and how many it may have.
	Concurrency() (usage, limit int64)
	// CountsWireSize reports whether any rate is in bytes, so that Share.WireSize matters.
	CountsWireSize() bool
	// Outlived reports whether data of a batch may live on once it was answered, so that it matters when
	// Lease.ReleaseLater is told that it is gone.
	Outlived() bool
}

// Request describes one batch. If several tenants have a share in it, it is admitted or refused whole: the
// first one's are the slot and the place in line, and each is held to its own ceilings and rates.
type Request struct {
	Share
	Others      []Share  // of further tenants, each named once; kept by the lease
	Signal      string   // traces, metrics, logs or profiles
	Ceilings    Ceilings // as Register returned them; nil applies the governor's own
	Provisional bool     // the figures are estimates, which the first Settle replaces
}

// Share is what one tenant has in a batch.
type Share struct {
	Tenant   string // as its data names it; empty: whoever the context speaks for, see Governor.Identify
	Memory   int64  // bytes of heap
	WireSize int64  // bytes of uncompressed OTLP protobuf; see Ceilings.CountsWireSize
	Items    int64  // spans, data points, log records or samples
}

// Lease is the right to hold one batch. All methods are safe for concurrent use.
type Lease interface {
	// Grow adds bytes to what the lease holds. It may wait, and may be refused with an [*Error], in
	// which case the lease holds what it held. Giving back (a negative figure) is never refused and
	// never waits.
	Grow(ctx context.Context, memory int64) error

	// Settle is for whoever finds a lease in its context instead of admitting the batch a second time.
	// The first Settle of a provisional lease replaces the estimates by r's figures, which are already
	// in memory: they are charged even where there is no room. Any other raises the lease to r's
	// memory if it holds less, which may wait and be refused. The returned lease is a part of this one:
	// releasing it gives back what Settle added and leaves the place among its user's batches.
	// It fails with an [*Error] as Admit does, and with [ErrReleased] if this lease has ended, as it
	// does for whoever works on a batch after its sender was answered; then the caller admits it anew.
	Settle(ctx context.Context, r Request) (Lease, error)

	// Refuse returns the answer for a batch that was admitted and then failed for one of the reasons, such
	// as ProcessingTimeout, with what was observed and what is allowed. The lease still holds what it held.
	Refuse(ctx context.Context, reason Reason, observed, limit int64) *Error

	// Release gives everything back and records outcome, which is what became of the batch: nil, the
	// error of whoever worked on it, or an [*Error]. The first call counts, further ones do nothing.
	Release(outcome error)

	// ReleaseLater is Release for a batch whose data may live on after its user has returned, in a queue or a
	// batcher: the place is given back now, while the memory stays on the books of its tenants, as carried,
	// until gone is called. Gone must be called once the data is garbage and may be called more than once.
	// The first call of either Release or ReleaseLater counts; for any other one, gone does nothing.
	ReleaseLater(outcome error) (gone func())
}

// ErrReleased says that a lease has ended.
var ErrReleased = errors.New("the lease has been released")

type leaseKey struct{}

// ContextWithLease returns a copy of ctx that carries l.
func ContextWithLease(ctx context.Context, l Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// LeaseFromContext returns the lease that ctx carries, or nil.
func LeaseFromContext(ctx context.Context) Lease {
	l, _ := ctx.Value(leaseKey{}).(Lease)
	return l
}
