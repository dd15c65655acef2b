// SPDX-License-Identifier: Apache-2.0

package door

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKnownTenantHasAFewCallsInWhateverOthersSend(t *testing.T) {
	var s spared
	take := func(c *call, tenant string) bool { return s.take(c, tenant, 100, 100) }
	calls := make([]call, spareCalls+1)
	for i := range spareCalls {
		require.True(t, take(&calls[i], "a"))
	}
	require.False(t, take(&calls[spareCalls], "a"), "a few")
	require.False(t, take(&call{}, ""), "nobody knows it")
	require.True(t, take(&call{}, "b"))
	s.give(&calls[spareCalls])
	s.give(&calls[0])
	s.give(&calls[0])
	require.True(t, take(&calls[0], "a"))
	require.False(t, take(&calls[spareCalls], "a"))
}

func TestAKnownTenantHasManySmallCallsIn(t *testing.T) {
	var s spared
	const limit = 1000
	in := func(tenant string, bytes int64) (calls int) {
		for s.take(&call{}, tenant, bytes, limit) {
			calls++
		}
		return calls
	}
	require.Equal(t, 25, in("a", 10), "a quarter of what may be")
	require.Equal(t, spareCalls, in("b", 400))
	require.Equal(t, spareCalls, in("c", 10), "all together have no more than all of it")
	calls := make([]call, 2)
	s = spared{}
	for i := range calls {
		require.True(t, s.take(&calls[i], "a", 100, limit))
		s.give(&calls[i])
	}
	require.Zero(t, s.bytes)
	require.Empty(t, s.calls)
}
