// SPDX-License-Identifier: Apache-2.0

package door

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const mib = 1 << 20

// ways returns the account of a pool of 64 MiB, of which 8 may be on their way in.
func ways() (*wire, *purse) {
	p := newPurse(64*mib, 32*mib)
	return newWire(p), p
}

func TestShareOfAnAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		mine, own, others int64 // bytes
		another           bool  // has a request here
		observed, limit   int64
		over              bool
	}{
		"nothing here":                      {observed: 0, limit: 6 * mib},
		"alone within three quarters":       {mine: 6*mib - 1, observed: 6*mib - 1, limit: 6 * mib},
		"alone over three quarters":         {mine: 6 * mib, observed: 6 * mib, limit: 6 * mib, over: true},
		"a quarter while another has some":  {mine: 2 * mib, another: true, observed: 2 * mib, limit: 2 * mib, over: true},
		"within a quarter beside a big one": {mine: 2*mib - 1, others: 6 * mib, another: true, observed: 2*mib - 1, limit: 2 * mib},
		"all is full":                       {mine: mib, others: 7 * mib, another: true, observed: 8 * mib, limit: 8 * mib, over: true},
		"one message of any size":           {mine: 20 * mib, own: 20 * mib, another: true, observed: 0, limit: 2 * mib},
		"a message beside one's others":     {mine: 22 * mib, own: 20 * mib, another: true, observed: 2 * mib, limit: 2 * mib, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := ways()
			me, other := w.join("10.0.0.1"), w.join("10.0.0.2")
			me.add(tt.mine)
			other.add(tt.others)
			if tt.another {
				other.begin(false)
			}
			if tt.own > 0 {
				me.begin(false)
			}
			observed, limit, over := me.over(tt.own)
			require.Equal(t, tt.over, over)
			require.Equal(t, tt.observed, observed)
			require.Equal(t, tt.limit, limit)
			require.Equal(t, tt.another, me.contended())
		})
	}
}

func TestBytesOfNobodyAreLaidToWhoeverHasRequestsComing(t *testing.T) {
	w, _ := ways()
	many, one := w.join("10.0.0.1"), w.join("10.0.0.2")
	for range 3 {
		many.begin(true)
	}
	one.begin(true)
	w.add(2 * mib)
	many.add(mib)

	held, _, _ := many.over(0)
	require.EqualValues(t, mib+3*mib/2, held)
	held, _, _ = one.over(0)
	require.EqualValues(t, mib/2, held)

	one.arrived() // and half a MiB turns out to be its own
	one.claim(mib / 2)
	held, _, _ = one.over(0)
	require.EqualValues(t, mib/2, held)
	held, _, _ = many.over(0)
	require.EqualValues(t, mib+3*mib/2, held)
}

func TestAnAddressIsForgottenOnceNothingOfItIsLeft(t *testing.T) {
	w, _ := ways()
	p := w.join("10.0.0.1")
	require.Same(t, p, w.join("10.0.0.1"))
	p.begin(true)
	p.leave()
	p.leave() // the connection is gone before its call
	require.Same(t, p, w.join("10.0.0.1"))
	p.leave()
	p.arrived()
	p.end()
	require.Empty(t, w.mu.peers)
	require.Zero(t, w.mu.active)
	require.Zero(t, w.mu.coming)
}

// What the pool is told is never less than what there is, nor much more, and nothing once nothing is left.
func TestWhatIsOwed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := ways()
		var held []int64
		t.Repeat(map[string]func(*rapid.T){
			"more": func(t *rapid.T) {
				held = append(held, rapid.Int64Range(1, 4*owedStep).Draw(t, "bytes"))
				w.add(held[len(held)-1])
			},
			"less": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing is held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				w.add(-held[i])
				held = append(held[:i], held[i+1:]...)
			},
			"": func(t *rapid.T) {
				var total int64
				for _, bytes := range held {
					total += bytes
				}
				owed := p.owed.Load()
				if owed < total || owed >= total+2*owedStep || total == 0 && owed != 0 {
					t.Fatalf("%d bytes are here and %d are owed", total, owed)
				}
			},
		})
	})
}

func TestWhatIsOwedByManyAtOnce(t *testing.T) {
	w, p := ways()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 2000 {
				w.add(int64(i+1) * 5000)
				if owed := p.owed.Load(); owed < 0 {
					t.Errorf("%d bytes are owed", owed)
				}
				w.add(-int64(i+1) * 5000)
			}
		})
	}
	all.Wait()
	require.Zero(t, w.total.Load())
	require.Zero(t, p.owed.Load())
}
