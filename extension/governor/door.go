// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"net/http"

	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"google.golang.org/grpc"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/door"
	"github.com/otel-governor/otel-governor/internal/pressure"
	"github.com/otel-governor/otel-governor/internal/strict"
)

var (
	_ extensionmiddleware.GRPCServer = (*governor)(nil)
	_ extensionmiddleware.HTTPServer = (*governor)(nil)
)

// newDoor returns what stands at the receivers that name g among their middlewares.
func (g *governor) newDoor() *door.Door {
	c := g.config
	connections := c.Door.MaxConnections
	if connections == strict.Unlimited {
		connections = 0
	}
	return door.New(door.Settings{
		Governor: g,
		Logger:   g.logger,
		Memory:   unleased{g},
		Refuse: func(ctx context.Context, signal string, reason admission.Reason, observed, limit int64) *admission.Error {
			t, _ := g.member(ctx, "")
			defer t.Unpin()
			if e := (&admission.Error{Reason: reason}); g.observing(ctx, t, reason) {
				return e
			}
			return g.refuseAtOnce(ctx, signal, t, &admission.Error{Reason: reason, Observed: observed, Limit: limit})
		},
		Critical:       func() bool { return g.guard.levels.Level() == pressure.Critical },
		Ease:           g.ease,
		Known:          g.known,
		Signal:         g.signalOf,
		Observe:        c.Mode == ModeObserve,
		TenantByHeader: len(c.Tenants.AuthAttributes) == 0,
		GRPCTap:        c.Door.GRPCTap,
		MaxConnections: connections,
		QueueTimeout:   c.Admission.QueueTimeout,
	})
}

// GetGRPCServerOptions implements extensionmiddleware.GRPCServer.
func (g *governor) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	return g.door.GRPCServerOptions(), nil
}

// GetHTTPHandler implements extensionmiddleware.HTTPServer.
func (g *governor) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) { return g.door.HTTPHandler(next), nil }, nil
}

// known returns the name of the tenant that ctx speaks for if it has an override, or somebody but the client vouches
// for it.
func (g *governor) known(ctx context.Context) string {
	if !g.names(ctx, admission.Request{}) {
		return ""
	}
	t, known := g.member(ctx, "")
	defer t.Unpin()
	if !known || t.Untrusted() {
		return ""
	}
	return t.Name()
}

// ease returns what of whoever ctx speaks for is let in unweighed. There must be room for many such batches at their
// worst, and for some of those that are taken at their tenants' word, and nothing that counts what is in them.
func (g *governor) ease(ctx context.Context) (e door.Ease) {
	const many, some = 64, 4
	t := g.tenants.Default()
	most := g.maxBatchMemory.Load()
	counted := g.config.Admission.MaxBatchItems != strict.Unlimited
	if g.identified.Load() {
		t, _ = g.member(ctx, "")
		defer t.Unpin()
		c := t.Ceilings()
		counted = counted || c.MaxBatchItems > 0 || c.Rate.Items > 0
		if c.MaxBatchMemory > 0 {
			most = min(most, c.MaxBatchMemory)
		}
	}
	if counted {
		return e
	}
	st := g.pool.Stats()
	free := st.Capacity - st.Held - st.Carried - st.Owed
	return door.Ease{Worst: min(free/many, most), Ratio: t.Value.heft.usual(), Trusted: free / some}
}

// signalOf returns the signal that receivers take at an HTTP path, if that is known.
func (g *governor) signalOf(path string) string {
	if signals := g.signals.Load(); signals != nil {
		return (*signals)[path]
	}
	return ""
}

// unleased is the memory that requests take before there is a lease for them.
type unleased struct{ *governor }

var _ door.Memory = unleased{}

// Owe implements door.Memory.
func (u unleased) Owe(bytes int64) { u.pool.Owe(bytes) }

// Size implements door.Memory.
func (u unleased) Size() int64 { return u.pool.Stats().Capacity }

// MaxBatch implements door.Memory.
func (u unleased) MaxBatch() int64 { return u.maxBatchMemory.Load() }
