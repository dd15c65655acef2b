// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLadder compares a ladder with a slice that is sorted anew each time.
func TestLadder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type thing struct{ node node[int] }
		var (
			l      ladder[int]
			things = make([]thing, 8)
			values = make([]int, len(things))
			joined []int // in the order they came
		)
		for i := range things {
			values[i] = i
			things[i].node.of = &values[i]
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			i := rapid.IntRange(0, len(things)-1).Draw(t, "thing")
			n := &things[i].node
			others := slices.DeleteFunc(slices.Clone(joined), func(j int) bool { return j == i })
			switch class := rapid.SampledFrom([]int{0, 1, 63, 64, classes - 1, -1}).Draw(t, "class"); {
			case class < 0:
				l.remove(n)
				joined = others
			case !n.on() || n.class != class:
				joined = append(others, i)
				fallthrough
			default:
				l.put(n, class) // again in its class, it keeps its place
			}
			want := append([]int{}, joined...)
			slices.SortStableFunc(want, func(a, b int) int { return things[a].node.class - things[b].node.class })
			got := []int{}
			for _, of := range l.all() {
				got = append(got, *of)
			}
			require.Equal(t, want, got)
			if highest := l.highest(); len(want) > 0 {
				require.Equal(t, things[want[len(want)-1]].node.class, highest.class)
			} else {
				require.Nil(t, highest)
				require.Nil(t, l.lowest())
			}
		}
	})
}

func TestClassOf(t *testing.T) {
	require.Zero(t, classOf(0))
	require.Zero(t, classOf(-1))
	require.Equal(t, classes-1, classOf(1e300))
	for x := 1e-8; x < 7; x *= 1.01 {
		require.LessOrEqual(t, classOf(x), classOf(1.01*x))
		require.Less(t, classOf(x), classOf(1.04*x))
		require.InDelta(t, classOf(x), classOf(1.01*x), 1)
	}
}
