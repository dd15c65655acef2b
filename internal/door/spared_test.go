// SPDX-License-Identifier: Apache-2.0

package door

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKnownTenantHasAFewCallsInWhateverOthersSend(t *testing.T) {
	var s spared
	calls := make([]call, spareCalls+1)
	for i := range spareCalls {
		require.True(t, s.take(&calls[i], "a"))
	}
	require.False(t, s.take(&calls[spareCalls], "a"), "a few")
	require.False(t, s.take(&call{}, ""), "nobody knows it")
	require.True(t, s.take(&call{}, "b"))
	s.give(&calls[spareCalls])
	s.give(&calls[0])
	s.give(&calls[0])
	require.True(t, s.take(&calls[0], "a"))
	require.False(t, s.take(&calls[spareCalls], "a"))
}
