// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/tenant"
	"github.com/otel-governor/otel-governor/test/sim"
)

// simulated is a whole governor behind a simulation's door: it tells clients apart by a header, and has an
// override for each that is not a stranger.
type simulated struct {
	*tested
	t     *testing.T
	infos map[string]client.Info // what comes with the requests of each
}

const (
	// boundless is a ceiling of what a client is not limited in. Ceilings of tenants have no other word for it.
	boundless = 1 << 30
	// machines is how many times the pool its machine is: more than Go's heap takes up.
	machines = 8
)

func openGovernor(t *testing.T, p sim.Pool, clients []sim.Client) sim.Door {
	g := create(t, func(c *Config) {
		c.Memory.PoolFraction = new(1.0 / machines)
		c.Memory.GoMemLimitFraction = 0 // governors at once would set one limit
		c.Admission.MaxConcurrent, c.Admission.MaxQueued = p.Slots, p.MaxQueued
		c.Admission.MaxQueuedFraction = float64(p.MaxQueuedBytes) / float64(p.Capacity)
		c.Admission.QueueTimeout = p.QueueTimeout
		c.Admission.MaxBatchMemory = new(p.Capacity) // so that a batch is as large as the pool allows
		c.Tenants.MetadataKeys = []string{"x-tenant"}
		c.Tenants.Defaults = tenant.Override{MaxConcurrent: new(int64(boundless)), MemoryFraction: new(1.0)}
		c.Tenants.Overrides = overridesOf(clients)
	})
	g.kernel.bytes.Store(machines * p.Capacity)
	require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t, "{}")))
	require.NoError(t, g.Ready())
	require.Equal(t, p.Capacity, g.pool.Stats().Capacity)
	s := simulated{g, t, map[string]client.Info{}}
	for _, c := range clients {
		s.infos[c.Name] = client.FromContext(from(t.Context(), "x-tenant", c.Name))
	}
	return s
}

func overridesOf(clients []sim.Client) map[string]tenant.Override {
	overrides := map[string]tenant.Override{}
	for _, c := range clients {
		var o tenant.Override
		if c.Limits.Stranger {
			continue
		}
		if w := c.Limits.Weight; w > 0 {
			o.Weight = &w
		}
		if f := c.Limits.Fraction; f > 0 {
			o.MemoryFraction = &f
		}
		if n := c.Limits.Slots; n > 0 {
			o.MaxConcurrent = &n
		}
		o.MaxQueued = new(int64(boundless))
		if n := c.Limits.Queued; n > 0 {
			o.MaxQueued = &n
		}
		if r := c.Limits.ItemsPerSecond; r > 0 {
			o.Rate.Items = new(tenant.PerSecond(r))
		}
		overrides[c.Name] = o
	}
	return overrides
}

func (s simulated) Admit(ctx context.Context, c *sim.Client) (release func(), refusal string) {
	l, err := s.governor.Admit(client.NewContext(ctx, s.infos[c.Name]), traces(c.Batch, c.Items))
	if refused, is := errors.AsType[*admission.Error](err); is {
		return nil, string(refused.Reason)
	}
	return func() { l.Release(nil) }, ""
}

func (s simulated) Change(p sim.Pool, clients []sim.Client) {
	s.override(overridesOf(clients))
	s.kernel.bytes.Store(machines * p.Capacity)
	s.refresh(s.t.Context())
}

// TestSimulatedClients plays what the bare pool is tested with, too, with everything that stands before it.
func TestSimulatedClients(t *testing.T) {
	const quick = true // what is long is long for the sake of the pool alone, which plays it
	t.Run("shares", func(t *testing.T) { sim.PlayAll(t, openGovernor, quick, sim.Shares()...) })
	t.Run("neighbors", func(t *testing.T) { sim.PlayAll(t, openGovernor, quick, sim.Neighbors()...) })
	t.Run("gates", func(t *testing.T) { sim.PlayAll(t, openGovernor, quick, sim.Gates(string(admission.TenantBreaker))...) })
}
