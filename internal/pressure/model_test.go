// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBooksAgainstRecomputation gives random events to the books and compares them after each with what
// follows from a list of all that was ever left.
func TestBooksAgainstRecomputation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newLedger()
		t.Repeat(rapid.StateMachineActions(m))
		m.finish(t)
	})
}

// ledger is the list, and what the estimates of each owner must be by it.
type ledger struct {
	books   *Books
	owners  [3]*owner
	entries []*entry
	now     time.Time
	notices []time.Time // the first is when it began
	verdict int         // collections whose verdict is in
	seconds float64     // since the collection of the last verdict, as of the last tick or notice
	mortal  float64
}

type owner struct {
	carrier       Carrier
	told          int64
	mortal, drain float64
}

type entry struct {
	left    Left
	owner   *owner
	bytes   int64
	ended   bool
	counted bool // it ended before it was gone
	end     int  // how many notices there had been when it ended
	gone    bool
	goneAt  int // how many verdicts there had been
	wasOld  bool
}

func newLedger() *ledger {
	m := &ledger{now: time.Unix(1000, 0)}
	m.notices = []time.Time{m.now}
	m.books = NewBooks(m.now, Settings{})
	for i := range m.owners {
		o := &owner{}
		o.carrier.Init(func(delta int64) { o.told += delta })
		m.owners[i] = o
	}
	return m
}

func (m *ledger) epoch() int { return len(m.notices) - 1 }

// old reports whether a verdict has found that e survived.
func (m *ledger) old(e *entry) bool { return e.end < m.verdict }

func (m *ledger) Ends(t *rapid.T) {
	e := &entry{
		owner: rapid.SampledFrom(m.owners[:]).Draw(t, "owner"),
		bytes: rapid.SampledFrom([]int64{1, 1000, mib, 3 * mib, 50 * mib, 0}).Draw(t, "bytes"),
	}
	m.entries = append(m.entries, e)
	if rapid.IntRange(0, 4).Draw(t, "gone first") == 0 {
		m.gone(e)
	}
	m.end(e)
}

func (m *ledger) EndsAgain(t *rapid.T) { m.end(m.entry(t)) }

func (m *ledger) Goes(t *rapid.T) { m.gone(m.entry(t)) }

// GoMany is what a collection does.
func (m *ledger) GoMany(t *rapid.T) {
	for range rapid.IntRange(0, 20).Draw(t, "n") {
		m.gone(m.entry(t))
	}
}

func (m *ledger) Notice(t *rapid.T) {
	m.pass(t)
	if m.verdict < m.epoch() {
		m.settle()
	}
	m.notices = append(m.notices, m.now)
	m.books.Noticed(m.now, Runtime{}, 0, 0)
	m.looked()
}

func (m *ledger) Tick(t *rapid.T) {
	m.pass(t)
	if m.verdict < m.epoch() && m.now.Sub(m.notices[m.epoch()]) >= 100*time.Millisecond {
		m.settle()
	}
	m.books.Tick(m.now, 0)
	m.looked()
}

func (m *ledger) entry(t *rapid.T) *entry {
	if len(m.entries) == 0 {
		t.Skip("nothing has ended yet")
	}
	return rapid.SampledFrom(m.entries).Draw(t, "entry")
}

func (m *ledger) pass(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{100, 0, 10, 99, 1000, 5000}).Draw(t, "ms")) * time.Millisecond)
}

func (m *ledger) end(e *entry) {
	delta := m.books.End(&e.left, &e.owner.carrier, e.bytes)
	e.owner.told += delta
	if !e.ended {
		e.ended, e.counted, e.end = true, !e.gone, m.epoch()
	}
}

func (m *ledger) gone(e *entry) {
	m.books.Gone(&e.left)
	if !e.gone {
		e.gone, e.goneAt, e.wasOld = true, m.verdict, e.counted && m.old(e)
	}
}

// settle works out the estimates by the verdict of the last collection.
func (m *ledger) settle() {
	found := func(o *owner) (alive, dead int64) { // of what ended between the last two collections
		for _, e := range m.entries {
			if e.counted && e.end == m.verdict && (o == nil || o == e.owner) {
				if e.gone {
					dead += e.bytes
				} else {
					alive += e.bytes
				}
			}
		}
		return alive, dead
	}
	m.mortal = believe(m.mortal, found)(nil, 2*mib+1, 0, 0)
	seconds := m.notices[m.epoch()].Sub(m.notices[m.epoch()-1]).Seconds()
	for _, o := range m.owners {
		o.mortal = believe(o.mortal, found)(o, 1, 2*mib, m.mortal)
		if seconds > 0 {
			kept := math.Exp(-seconds / 2)
			o.drain = kept*o.drain + (1-kept)*float64(m.oldGone(o))/seconds
		}
	}
	m.verdict = m.epoch()
}

// believe returns the share of dead after a collection, if at least so many bytes ended before it. Some bytes more
// count as if they had died by a prior share.
func believe(was float64, found func(*owner) (alive, dead int64)) func(o *owner, least, weight int64, prior float64) float64 {
	return func(o *owner, least, weight int64, prior float64) float64 {
		alive, dead := found(o)
		if alive+dead < least {
			return was
		}
		now := (float64(dead) + float64(weight)*prior) / float64(alive+dead+weight)
		if now < was {
			return now
		}
		return (now + was) / 2
	}
}

// oldGone is what has died since the last verdict of what an earlier one found alive.
func (m *ledger) oldGone(o *owner) (n int64) {
	for _, e := range m.entries {
		if e.owner == o && e.wasOld && e.goneAt == m.verdict {
			n += e.bytes
		}
	}
	return n
}

func (m *ledger) looked() { m.seconds = m.now.Sub(m.notices[m.verdict]).Seconds() }

// Check compares after each step.
func (m *ledger) Check(t *rapid.T) {
	var left, carried, allOld int64
	for _, o := range m.owners {
		var old, prev, fresh, seen int64
		for _, e := range m.entries {
			if e.owner != o || !e.counted {
				continue
			}
			if !e.gone || !m.old(e) {
				seen += e.bytes // alive, or a verdict counts it
			}
			switch {
			case e.gone:
			case m.old(e):
				old += e.bytes
			case e.end == m.epoch():
				fresh += e.bytes
			default:
				prev += e.bytes
			}
		}
		c := &o.carrier
		require.Equal(t, [...]int64{old, prev, fresh}, [...]int64{c.old, c.prev, c.fresh})

		gone := m.oldGone(o)
		if seen+gone == 0 {
			o.drain = 0 // forgotten with the last byte
		}
		expected := max(0, int64(o.drain*m.seconds)-gone)
		believed := float64(max(old-expected, old-old/2)) + (1-o.mortal)*float64(prev+fresh)
		require.InDelta(t, believed, m.books.Carried(c), 2)
		require.Equal(t, o.told, m.books.Carried(c), "the sum of what was told")
		require.LessOrEqual(t, o.told, old+prev+fresh)
		require.Equal(t, seen+gone > 0, slices.Contains(m.books.mu.carriers, c))
		left += old + prev + fresh
		carried += o.told
		allOld += old
	}
	require.Equal(t, carried, m.books.Stats().Carried)
	require.InDelta(t, 1-m.mortal, m.books.Stats().Survival, 1e-9)
	require.Equal(t, [...]int64{left, allOld}, [...]int64{m.books.mu.left, m.books.mu.old})
}

// finish lets everything go and finds nothing left.
func (m *ledger) finish(t *rapid.T) {
	for _, e := range m.entries {
		m.gone(e)
	}
	m.Check(t)
	for range 2 {
		m.now = m.now.Add(time.Second)
		m.books.Noticed(m.now, Runtime{}, 0, 0)
		m.books.Tick(m.now.Add(100*time.Millisecond), 0)
	}
	for _, o := range m.owners {
		require.Zero(t, o.told)
	}
	require.Zero(t, m.books.Stats().Carried)
	require.Empty(t, m.books.mu.carriers)
}
