// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestABurstOfAnAddressComesInTurn has many calls of one address begin at once, of which nobody knows yet how much
// they bring.
func TestABurstOfAnAddressComesInTurn(t *testing.T) {
	for name, k := range map[string]struct {
		others   bool
		here     int64 // bytes
		together int
	}{
		"alone":                            {together: 3},
		"beside others":                    {others: true, together: 1},
		"with what it may have here":       {here: 300, together: 1},
		"with a message of the usual size": {here: 100, together: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(&purse{size: 400 * wireShare})
				if k.others {
					w.join("another").begin(true)
				}
				p, turns := w.join("address"), make(chan bool, 16)
				p.add(k.here)
				for range cap(turns) {
					p.begin(true)
					go func() { turns <- p.turn(t.Context(), turnAfter, nil) }()
				}
				synctest.Wait()
				assert.Len(t, turns, k.together)

				assert.True(t, <-turns)
				p.read(100)
				<-time.After(2 * lookEvery)
				assert.Len(t, turns, k.together, "one goes, one comes")

				<-time.After(turnAfter)
				assert.Len(t, turns, cap(turns)-1, "nobody waits for longer")
			})
		})
	}
}

// TestSmallMessagesComeTogether has an address that is known for small messages, until a large one comes.
func TestSmallMessagesComeTogether(t *testing.T) {
	w := newWire(&purse{size: 400 * wireShare})
	w.join("another").begin(true)
	p := w.join("address")
	p.begin(true)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 30 {
		assert.True(t, p.turn(t.Context(), turnAfter, nil))
		p.read(8)
	}
	for range 12 {
		assert.True(t, p.turn(t.Context(), turnAfter, nil))
	}
	assert.False(t, p.turn(gone, turnAfter, nil), "who has gone has no turn")
	for range 12 {
		p.read(90)
	}
	assert.True(t, p.turn(t.Context(), turnAfter, nil))
	assert.False(t, p.turn(gone, turnAfter, nil))
}

// TestNobodyWaitsForATurnOfAReceiverThatStops has one call at its message, and others wait for theirs.
func TestNobodyWaitsForATurnOfAReceiverThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Settings{Memory: &purse{size: 400 * wireShare}})
		d.wire.join("another").begin(true)
		p := d.wire.join("address")
		assert.True(t, p.turn(t.Context(), turnAfter, d.draining))
		start, told := time.Now(), make(chan error, 2)
		for _, refused := range []error{nil, context.Canceled} {
			c := &call{door: d, connection: &connection{peer: p}, refused: refused}
			c.cancel = func(why error) { told <- why }
			go func() {
				c.wait(t.Context())
				assert.False(t, c.turn)
				told <- nil
			}()
		}
		<-time.After(lookEvery)
		d.Drain()
		d.Drain()
		assert.ElementsMatch(t, []error{nil, context.Canceled, nil}, []error{<-told, <-told, <-told}, "and one is refused")
		assert.Equal(t, lookEvery, time.Since(start))
	})
}
