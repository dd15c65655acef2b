// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pressure"
)

// TestABatchThatACollectionMetIsNotTakenForNobodys has a collection come while a large batch is being decoded, or
// that had begun before it ended.
func TestABatchThatACollectionMetIsNotTakenForNobodys(t *testing.T) {
	const usual, large = 10 * mib, 20 * mib
	live := func(g *tested, bytes int64) pressure.Runtime {
		r := *g.guard.runtime.Load()
		r.Live = bytes
		return r
	}
	for name, tt := range map[string]struct {
		provisional, ended bool
		queued             bool
	}{
		"being decoded":               {provisional: true},
		"ended":                       {ended: true},
		"refused, where others queue": {ended: true, queued: true},
		"known to be there":           {},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // so that none begins by itself
			synctest.Test(t, func(t *testing.T) {
				g := shared(t, nil)
				if tt.queued {
					g = queued(t)
				}
				g.collected(live(g, usual))
				elapse(time.Second)
				r := traces(large, 1)
				r.Provisional = tt.provisional
				lease, err := g.Admit(t.Context(), r)
				require.NoError(t, err)
				defer lease.Release(nil)
				if tt.ended {
					lease.Release(nil)
				}
				g.collected(live(g, usual+large))
				elapse(time.Second)
				require.EqualValues(t, usual, g.guard.books.Stats().Unowned)
			})
		})
	}
}
