// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"
)

// TestBatchIsGoneExactlyWhenNobodyHasItsLastSpan moves, merges, thins out, clones and
// drops batches in any order. The last span of each batch has a name of its own, by
// which the model finds it wherever it went.
func TestBatchIsGoneExactlyWhenNobodyHasItsLastSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var held []ptrace.Traces
		fates, told := map[string]*fate{}, map[string]bool{}
		pick := func() int { return rapid.IntRange(0, len(held)-1).Draw(t, "of") }
		drop := func(i int) {
			held[i] = held[len(held)-1]
			held[len(held)-1] = ptrace.Traces{}
			held = held[:len(held)-1]
		}
		for range rapid.IntRange(2, 12).Draw(t, "steps") {
			op := "arrive"
			if len(held) > 0 {
				op = rapid.SampledFrom([]string{"arrive", "merge", "thin out", "clone", "drop"}).Draw(t, "op")
			}
			switch op {
			case "arrive":
				td, name := ptrace.NewTraces(), fmt.Sprintf("last of batch %d", len(fates))
				for range rapid.IntRange(1, 3).Draw(t, "scopes") {
					spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
					for range rapid.IntRange(1, 4).Draw(t, "spans") {
						spans.AppendEmpty()
					}
				}
				lastSpans := lastScopeSpans(td).Spans()
				lastSpans.At(lastSpans.Len() - 1).SetName(name)
				fates[name] = fateOf(t, Traces(td))
				held = append(held, td)
			case "merge":
				if from, to := pick(), pick(); from != to {
					held[from].ResourceSpans().MoveAndAppendTo(held[to].ResourceSpans())
					drop(from)
				}
			case "thin out":
				removeSpans(held[pick()], func(ptrace.Span) bool { return rapid.Bool().Draw(t, "remove") })
			case "clone":
				clone := ptrace.NewTraces()
				held[pick()].CopyTo(clone)
				removeSpans(clone, func(s ptrace.Span) bool { s.SetName("cloned"); return false })
				held = append(held, clone)
			case "drop":
				drop(pick())
			}
			there := map[string]bool{}
			for _, td := range held {
				removeSpans(td, func(s ptrace.Span) bool { there[s.Name()] = true; return false })
			}
			collect(t)
			for name, f := range fates {
				if there[name] {
					require.Zero(t, f.calls.Load(), name)
				} else if !told[name] {
					require.True(t, within(f.done), name)
					told[name] = true
				}
			}
		}
		for name := range told {
			require.EqualValues(t, 1, fates[name].calls.Load(), name)
		}
	})
}

// removeSpans removes the spans that are chosen, and also serves to look at all.
func removeSpans(td ptrace.Traces, chosen func(ptrace.Span) bool) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(chosen)
		}
	}
}
