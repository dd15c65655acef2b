// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		size    Size
		unowned int64
		want    int64
	}{
		"the pool":                             {Size{50, 100, 200}, 20, 50},
		"what is nobody's takes of the budget": {Size{100, 100, 200}, 20, 80},
		"more is nobody's than there is":       {Size{100, 100, 200}, 120, 0},
		"no headroom at all":                   {Size{100, 100, 100}, 20, 75},
		"nothing bounds the heap":              {Size{100, Unbounded, Unbounded}, 20, 100},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBooks(start, Settings{})
			b.Resize(tt.size)
			collected(b, start.Add(time.Second), Runtime{Live: tt.unowned})
			room, reserved := b.Room()
			require.Equal(t, [...]int64{tt.want, 0}, [...]int64{room, reserved})
			require.Equal(t, tt.want, b.Attainable())
		})
	}
}

func TestUnowned(t *testing.T) {
	b := NewBooks(start, Settings{})
	var c Carrier
	old, fresh := Left{}, Left{}
	b.End(&old, &c, 100)
	collected(b, start.Add(1*time.Second), Runtime{Live: 1000})
	require.EqualValues(t, 900, b.Stats().Unowned, "all but what is carried")

	b.End(&fresh, &c, 50)
	b.Noticed(start.Add(2*time.Second), Runtime{Live: 2000}, 300, 0)
	require.EqualValues(t, 900, b.Stats().Unowned, "as before, until the verdict is in")
	b.Gone(&old)
	b.Tick(start.Add(2*time.Second+99*time.Millisecond), 0)
	require.EqualValues(t, 900, b.Stats().Unowned)
	b.Tick(start.Add(2*time.Second+100*time.Millisecond), 0)
	require.EqualValues(t, 2000-300-50, b.Stats().Unowned)

	collected(b, start.Add(3*time.Second), Runtime{Live: 40})
	require.Zero(t, b.Stats().Unowned, "never less")
}

// What needs more than was ever to be had in ten minutes can never fit. What was to be had once may be again.
func TestAttainableIsTheBestOfTenMinutes(t *testing.T) {
	b := NewBooks(start, Settings{})
	b.Resize(Size{Pool: 1000, Budget: 1000, Critical: 2000})
	require.EqualValues(t, 1000, b.Attainable(), "nothing is known yet")
	collected(b, start.Add(time.Second), Runtime{Live: 300})
	require.EqualValues(t, 700, b.Attainable(), "before, nothing was known")

	low := start.Add(3 * time.Minute)
	collected(b, low, Runtime{Live: 100})
	high := low.Add(time.Second)
	collected(b, high, Runtime{Live: 600})
	for at := high; at.Before(low.Add(10 * time.Minute)); at = at.Add(100 * time.Millisecond) {
		b.Tick(at, 0)
		require.EqualValues(t, 900, b.Attainable(), at.Sub(low))
	}
	room, _ := b.Room()
	require.EqualValues(t, 400, room)
	b.Tick(low.Add(11*time.Minute), 0)
	require.EqualValues(t, 400, b.Attainable())

	collected(b, low.Add(24*time.Hour), Runtime{Live: 500})
	b.Tick(low.Add(24*time.Hour+time.Minute), 0)
	require.EqualValues(t, 500, b.Attainable())
}
