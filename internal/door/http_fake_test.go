// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otel-governor/otel-governor/admission"
)

// clerk is a governor that writes down what it is asked, and admits unless it is told otherwise.
type clerk struct {
	check func(context.Context, admission.Request) error
	admit func(context.Context, admission.Request) error

	mu     sync.Mutex
	asked  []admission.Request // of Admit
	leases []*clerkLease
}

func (c *clerk) Identify(context.Context) (string, bool) { return "acme", true }

func (c *clerk) Register(admission.Limits) (admission.Ceilings, bool, error) { panic("not for doors") }

func (c *clerk) Check(ctx context.Context, r admission.Request) error {
	if c.check == nil {
		return nil
	}
	return c.check(ctx, r)
}

func (c *clerk) Admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r)
	if c.admit != nil {
		if err := c.admit(ctx, r); err != nil {
			return nil, err
		}
	}
	l := &clerkLease{request: r}
	c.leases = append(c.leases, l)
	return l, nil
}

// only returns the one lease that there was.
func (c *clerk) only(t *testing.T) *clerkLease {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(t, c.leases, 1)
	return c.leases[0]
}

// atWork counts the leases that have not ended.
func (c *clerk) atWork() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.leases {
		if !l.released.Load() {
			n++
		}
	}
	return n
}

// clerkLease is a lease of the clerk.
type clerkLease struct {
	admission.Lease
	request  admission.Request
	settle   error
	released atomic.Bool
	outcome  error // of the first release
}

func (l *clerkLease) Settle(context.Context, admission.Request) (admission.Lease, error) {
	return l, l.settle
}

func (l *clerkLease) Refuse(_ context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
	return &admission.Error{Reason: reason, Observed: observed, Limit: limit}
}

func (l *clerkLease) Release(outcome error) {
	if l.released.CompareAndSwap(false, true) {
		l.outcome = outcome
	}
}

// books are the memory that a door pays from.
type books struct {
	size, maxBatch int64

	mu         sync.Mutex
	owed, most int64
}

func (b *books) Owe(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed += bytes
	b.most = max(b.most, b.owed)
}

func (b *books) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owed
}

func (b *books) peak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

func (b *books) Size() int64     { return b.size }
func (b *books) MaxBatch() int64 { return b.maxBatch }

// house is a door with all that it needs.
type house struct {
	*Door
	clerk    *clerk
	books    *books
	log      *observer.ObservedLogs
	critical atomic.Bool
}

// newHouse returns a door to a pool of 32 MiB, of which 4 may be on their way in and 16 in one batch. At its end
// nothing may be held.
func newHouse(t *testing.T) *house {
	core, log := observer.New(zapcore.DebugLevel)
	h := &house{clerk: &clerk{}, books: &books{size: 32 << 20, maxBatch: 16 << 20}, log: log}
	h.Door = New(Settings{
		Governor: h.clerk,
		Logger:   zap.New(core),
		Memory:   h.books,
		Refuse: func(_ context.Context, _ string, reason admission.Reason, observed, limit int64) *admission.Error {
			return &admission.Error{Reason: reason, Observed: observed, Limit: limit, RetryAfter: time.Second}
		},
		Critical: h.critical.Load,
		Signal: func(path string) string {
			return map[string]string{"/v1/traces": "traces", "/v1/logs": "logs"}[path]
		},
		QueueTimeout: time.Second,
	})
	return h
}

// requireEmpty checks that nothing is held any more.
func (h *house) requireEmpty(t *testing.T) {
	t.Helper()
	require.Zero(t, h.books.now(), "owed")
	require.Zero(t, h.wire.total.Load(), "on their way in")
	require.Zero(t, h.wire.mu.active, "addresses")
	require.Empty(t, h.wire.mu.peers, "peers")
	require.Empty(t, h.bodies.coming, "bodies")
	require.Zero(t, h.bodies.small, "bytes of small bodies")
	require.Zero(t, h.bodies.large, "bytes of large bodies")
	require.Zero(t, h.clerk.atWork(), "leases")
}
