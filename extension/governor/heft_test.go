// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

func TestHeftIsThatOfTheHeaviestBatchUntilItIsForgotten(t *testing.T) {
	var h heft
	require.Zero(t, h.usual(), "nothing is known")
	h.saw(40*mib, heftFrom-1)
	require.Zero(t, h.usual(), "too small to say anything")
	h.saw(3*mib, mib)
	require.InDelta(t, 3, h.usual(), 0.01)
	h.saw(100*mib, mib)
	require.Zero(t, h.usual(), "made to be heavy")
	forgotten := 0
	for ; h.usual() == 0; forgotten++ {
		h.saw(3*mib, mib)
	}
	require.Greater(t, forgotten, 2*heftMemory)
	require.Less(t, forgotten, 3*heftMemory)
}

func TestATenantIsTakenAtItsWordForWhatItsBatchesWereLately(t *testing.T) {
	g := shared(t, func(c *Config) {
		c.Tenants.Overrides = map[string]tenant.Override{"counted": {MaxBatchItems: new(int64(10_000))}}
	})
	ratio := func(name string) float64 { return g.ease(from(t.Context(), "x-tenant", name)).Ratio }
	send := func(name string, memory int64) {
		ctx := from(t.Context(), "x-tenant", name)
		l, err := g.Admit(ctx, admission.Request{Provisional: true, Share: admission.Share{Memory: mib, WireSize: mib / 4}})
		require.NoError(t, err)
		defer l.Release(nil)
		part, err := l.Settle(ctx, admission.Request{Share: admission.Share{Memory: memory}})
		if err == nil {
			part.Release(nil)
		}
	}
	for _, name := range []string{"a", "b", "counted"} {
		require.Zero(t, ratio(name))
		send(name, mib)
	}
	require.InDelta(t, 4, ratio("a"), 0.01)
	require.EqualValues(t, g.pool.Stats().Capacity/4, g.ease(from(t.Context(), "x-tenant", "a")).Trusted)
	require.Zero(t, ratio("counted"), "whose items are to be counted")

	send("a", g.maxBatchMemory.Load()+1)
	require.Zero(t, ratio("a"), "what it was refused for counts, too")
	require.InDelta(t, 4, ratio("b"), 0.01)
}
