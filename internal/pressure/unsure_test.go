// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatMayBeSomebodysIsNotTakenForNobodys begins with 300 bytes that are nobody's.
func TestWhatMayBeSomebodysIsNotTakenForNobodys(t *testing.T) {
	for name, tt := range map[string]struct {
		live, known, coming int64
		want                int64
	}{
		"all that there is more is being decoded":     {live: 500, coming: 200, want: 300},
		"so may be all that is nobody's":              {live: 500, coming: 600, want: 300},
		"more is there than is being decoded":         {live: 600, coming: 200, want: 400},
		"less is there than before, although":         {live: 100, coming: 200, want: 100},
		"nothing is there that is not known":          {live: 500, known: 600, coming: 200, want: 0},
		"nothing is being decoded, and more is there": {live: 500, known: 100, want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBooks(start, Settings{})
			collected(b, start.Add(time.Second), Runtime{Live: 300})
			b.Noticed(start.Add(2*time.Second), Runtime{Live: tt.live}, tt.known, tt.coming)
			b.Tick(start.Add(2*time.Second+verdictAfter), 0)
			require.Equal(t, tt.want, b.Stats().Unowned)
		})
	}
}

// TestWhatEndsWhileACollectionMarksMayBeAlive has a batch end: the next collection finds it dead before or after its
// notice, or finds it alive since it had begun.
func TestWhatEndsWhileACollectionMarksMayBeAlive(t *testing.T) {
	const size = 10 * droppedFrom
	for name, tt := range map[string]struct {
		before, after bool // it is seen dead
		want          int64
	}{
		"dead before the notice": {before: true, want: 300 + size},
		"dead after the notice":  {after: true, want: 300 + size},
		"not dead":               {want: 300},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBooks(start, Settings{})
			collected(b, start.Add(time.Second), Runtime{Live: 300})
			d := &dropped{books: b, bytes: size, epoch: b.mu.epoch}
			b.mu.dropped += size
			if tt.before {
				d.seen()
			}
			b.Noticed(start.Add(2*time.Second), Runtime{Live: 300 + size}, 0, 0)
			if tt.after {
				d.seen()
			}
			b.Tick(start.Add(2*time.Second+verdictAfter), 0)
			require.Equal(t, tt.want, b.Stats().Unowned)

			if !tt.before && !tt.after { // until the collection after that
				d.seen()
			}
			collected(b, start.Add(3*time.Second), Runtime{Live: 400 + size})
			require.EqualValues(t, 400+size, b.Stats().Unowned)
		})
	}
}

func TestARealCollectionSeesWhatWasDropped(t *testing.T) {
	b := NewBooks(time.Now(), Settings{})
	b.Dropped(droppedFrom - 1)
	require.Zero(t, b.mu.dropped, "too little to follow")
	b.Dropped(droppedFrom)
	b.Dropped(2 * droppedFrom)
	for unseen := int64(1); unseen > 0; {
		runtime.GC()
		b.mu.Lock()
		unseen = b.mu.dropped
		b.mu.Unlock()
	}
}
