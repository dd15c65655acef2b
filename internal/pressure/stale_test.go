// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start is when the books of a test begin.
var start = time.Unix(1000, 0)

// collected tells books of a collection and gets its verdict.
func collected(b *Books, at time.Time, r Runtime) {
	b.Noticed(at, r, 0, 0)
	b.Tick(at.Add(verdictAfter), 0)
}

func TestRefusalStartsACollectionWhenTheLastIsStale(t *testing.T) {
	for name, tt := range map[string]struct {
		fraction float64
		cost     time.Duration // of the last collection
		procs    int64
		missed   int64 // collections before it that nobody noticed, of the same cost
		dead     int64 // of 100 old bytes
		want     time.Duration
	}{
		"cheap":                            {0.02, 10 * time.Millisecond, 2, 0, 0, 2 * time.Second},
		"dear":                             {0.02, 200 * time.Millisecond, 2, 0, 0, 5 * time.Second},
		"dear on many processors":          {0.02, 200 * time.Millisecond, 10, 0, 0, 2 * time.Second},
		"dear and more may be spent":       {0.04, 200 * time.Millisecond, 2, 0, 0, 2500 * time.Millisecond},
		"one of three is noticed":          {0.02, 200 * time.Millisecond, 2, 2, 0, 5 * time.Second},
		"it found a twentieth dead":        {0.02, 10 * time.Millisecond, 2, 0, 5, 500 * time.Millisecond},
		"it found less dead":               {0.02, 10 * time.Millisecond, 2, 0, 4, 2 * time.Second},
		"it found all dead and is dear":    {0.02, 200 * time.Millisecond, 2, 0, 100, 5 * time.Second},
		"processors unknown, taken as one": {0.02, 100 * time.Millisecond, 0, 0, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBooks(start, Settings{GCFraction: tt.fraction})
			var c Carrier
			lefts := make([]Left, 100)
			for i := range lefts {
				b.End(&lefts[i], &c, 1)
			}
			collected(b, start, Runtime{GCs: 100, GCTime: time.Hour}) // whose own cost is not known
			for i := range tt.dead {
				b.Gone(&lefts[i])
			}
			last := start.Add(time.Minute)
			collected(b, last, Runtime{
				GCs: 101 + tt.missed, GCTime: time.Hour + time.Duration(1+tt.missed)*tt.cost, Procs: tt.procs,
			})
			require.False(t, b.Refused(last.Add(tt.want-time.Millisecond)))
			require.True(t, b.Refused(last.Add(tt.want)))
			require.False(t, b.Refused(last.Add(time.Hour)), "one at a time")
			collected(b, last.Add(2*time.Hour), Runtime{})
			require.True(t, b.Refused(last.Add(3*time.Hour)))
		})
	}
}

// A collection that others held up tells nothing of what the next one costs; two in a row do.
func TestOneDearCollectionDelaysNobody(t *testing.T) {
	const usual, dear = 100 * time.Millisecond, 10 * time.Second
	b := NewBooks(start, Settings{GCFraction: 0.02})
	at, r := start, Runtime{GCs: 1, Procs: 2}
	for _, tt := range []struct{ cost, want time.Duration }{
		{usual, 2 * time.Second}, // its own is not known
		{dear, 250 * time.Second},
		{usual, 2500 * time.Millisecond},
		{dear, 2500 * time.Millisecond},
		{usual, 2500 * time.Millisecond},
		{dear, 2500 * time.Millisecond},
		{dear, 250 * time.Second},
	} {
		at = at.Add(time.Hour)
		r.GCs, r.GCTime = r.GCs+1, r.GCTime+tt.cost
		collected(b, at, r)
		require.False(t, b.Refused(at.Add(tt.want-time.Millisecond)))
		require.True(t, b.Refused(at.Add(tt.want)))
	}
}

func TestRefusalBeforeTheFirstCollection(t *testing.T) {
	b := NewBooks(start, Settings{GCFraction: 0.02})
	require.False(t, b.Refused(start.Add(time.Second)))
	require.True(t, b.Refused(start.Add(2*time.Second)))
}

func TestNoFractionNoCollection(t *testing.T) {
	b := NewBooks(start, Settings{})
	require.False(t, b.Refused(start.Add(time.Hour)))
}

// Where the room is short because of what is believed to be dead, a tick asks to make sure of it.
func TestDoubtStartsACollection(t *testing.T) {
	b := NewBooks(start, Settings{})
	b.Resize(Size{Pool: 800 * mib, Budget: 800 * mib, Critical: 1000 * mib}) // safe: 950 MiB
	var c Carrier
	ends := func(mibs int) []Left {
		lefts := make([]Left, mibs)
		for i := range lefts {
			b.End(&lefts[i], &c, mib)
		}
		return lefts
	}
	now := start
	for range 30 { // until nearly everything is believed to die
		for _, l := range ends(1000) {
			b.Gone(&l)
		}
		now = now.Add(time.Second)
		collected(b, now, Runtime{})
	}
	require.Less(t, b.Stats().Survival, 1e-6)

	now = now.Add(time.Second)
	ends(100)
	room, reserved := b.Room()
	require.Equal(t, [...]int64{800 * mib, 0}, [...]int64{room, reserved}, "less than critical leaves")
	require.False(t, b.Tick(now, 800*mib))

	ends(200)
	room, reserved = b.Room()
	require.EqualValues(t, 800*mib, room)
	require.InDelta(t, 150*mib, reserved, mib)
	require.False(t, b.Tick(now, 400*mib), "it is in nobody's way")
	b.mu.last.runtime.Live = 2400 * mib
	require.False(t, b.Tick(now, 500*mib), "more than eight bytes to mark for each in doubt")
	b.mu.last.runtime.Live = 2300 * mib
	require.True(t, b.Tick(now, 500*mib))
	require.False(t, b.Tick(now, 500*mib), "one at a time")

	b.Noticed(now, Runtime{Live: 300 * mib}, 0, 0)
	require.False(t, b.Tick(now, 500*mib), "its verdict is awaited")
	now = now.Add(time.Second)
	require.False(t, b.Tick(now, 500*mib), "all of them live")
	require.EqualValues(t, 300*mib, b.Stats().Carried)
	_, reserved = b.Room()
	require.Zero(t, reserved)
}
