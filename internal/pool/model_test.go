// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// TestPoolAgainstReference gives random commands to a pool and to the reference. Each runs in a bubble, so
// that a step is over when everybody waits, and what they were told is compared to the millisecond.
func TestPoolAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newMachine(t)
			t.Cleanup(m.abandon)
			t.Repeat(rapid.StateMachineActions(m))
			m.finish(t)
		})
	})
}

// Few sizes, so that things fit exactly, and fail to by a little.
var (
	sizes   = rapid.SampledFrom([]int64{30, 10, 0, 50, 20, 70, 110})
	callers = rapid.SampledFrom([]caller{
		patient, patient, patient, patient, patient,
		{left: 800 * time.Millisecond},
		{left: 2 * time.Second},
		{ended: true, left: patient.left},
	})
)

// machine drives both sides. A pair is one lease or one call on either side.
type machine struct {
	pool     *pool.Pool
	ref      *reference
	accounts [1]pool.Account // alone, so that the line is first in, first out
	gates    []*pool.Gate
	leases   []*leasePair // all that were ever granted
	calls    []*callPair  // all that wait
	before   pool.Stats
	excused  bool // this step may put the ledger over capacity
}

type leasePair struct {
	lease *pool.Lease
	ref   *refLease
}

type callPair struct {
	leasePair
	ref    *refCall
	cancel context.CancelFunc
	isNew  bool // makes a lease when granted

	answers int
	result  pool.Result
}

func newMachine(t *rapid.T) *machine {
	s := pool.Settings{
		Capacity:       100,
		Slots:          rapid.SampledFrom([]int64{3, 1, 2, 5}).Draw(t, "slots"),
		MaxQueued:      rapid.SampledFrom([]int64{8, 4, 8, 0}).Draw(t, "max queued"),
		MaxQueuedBytes: rapid.SampledFrom([]int64{400, 100, 0}).Draw(t, "max queued bytes"),
		QueueTimeout:   time.Second,
	}
	m := &machine{
		pool: pool.New(s),
		ref:  &reference{settings: s, capacity: s.Capacity, gates: []int64{1, 2}},
	}
	for _, limit := range m.ref.gates {
		m.gates = append(m.gates, pool.NewGate(limit))
	}
	m.before = m.pool.Stats()
	return m
}

// call runs one request on both sides.
func (m *machine) call(c *callPair, who caller, theirs func(), ours func(context.Context) pool.Result) {
	ctx, cancel := context.WithCancel(context.Background())
	if who.left != patient.left {
		ctx, cancel = context.WithTimeout(context.Background(), who.left)
	}
	if c.cancel = cancel; who.ended {
		cancel()
	}
	m.calls = append(m.calls, c)
	theirs()
	go func() {
		c.result = ours(ctx)
		c.answers++
	}()
}

func (m *machine) Acquire(t *rapid.T) {
	who, r, gate := m.who(t), pool.Request{Bytes: sizes.Draw(t, "bytes")}, m.gate(t)
	account := rapid.IntRange(0, len(m.accounts)-1).Draw(t, "account")
	r.Account, r.Provisional, r.Debt = &m.accounts[account], rapid.Bool().Draw(t, "provisional"), m.rarely(t, "debt")
	r.Parked = r.Bytes // the reference does not tell estimates apart in line
	if gate != noGate {
		r.Gate = m.gates[gate]
	}
	c := &callPair{isNew: true}
	c.lease = new(pool.Lease)
	c.leasePair.ref = &refLease{account: account, gate: noGate, provisional: r.Provisional}
	c.ref = &refCall{lease: c.leasePair.ref, gate: gate, slot: true, bytes: r.Bytes, through: r.Bytes}
	m.excused = r.Debt
	m.call(c, who,
		func() { m.ref.acquire(c.ref, who, r.Debt) },
		func(ctx context.Context) pool.Result { return m.pool.Acquire(ctx, c.lease, r) })
}

func (m *machine) Grow(t *rapid.T) {
	l, who, n := m.lease(t), m.who(t), rapid.SampledFrom([]int64{30, 10, 50, 80, 0, -10, -50}).Draw(t, "n")
	c := &callPair{leasePair: *l, ref: &refCall{lease: l.ref, gate: noGate, bytes: n}}
	m.call(c, who,
		func() {
			if n <= 0 {
				m.ref.shrink(c.ref)
			} else {
				m.ref.grow(c.ref, who)
			}
		},
		func(ctx context.Context) pool.Result { return l.lease.Grow(ctx, n) })
}

func (m *machine) Settle(t *rapid.T) {
	l, who, gate := m.lease(t), m.who(t), m.gate(t)
	r := pool.Request{Bytes: sizes.Draw(t, "bytes"), Debt: m.rarely(t, "debt")}
	if gate != noGate {
		r.Gate = m.gates[gate]
	}
	c := &callPair{isNew: true}
	c.lease = new(pool.Lease)
	c.leasePair.ref = &refLease{account: l.ref.account, gate: noGate, root: holder(l.ref)}
	c.ref = &refCall{lease: c.leasePair.ref, gate: gate, through: r.Bytes}
	m.excused = r.Debt || holder(l.ref).provisional
	m.call(c, who,
		func() { m.ref.settleLease(c.ref, who, r.Debt) },
		func(ctx context.Context) pool.Result { return l.lease.Settle(ctx, c.lease, r) })
}

func (m *machine) Owe(t *rapid.T) {
	l, n := m.lease(t), sizes.Draw(t, "n")
	if !l.ref.ended {
		l.ref.bytes += n
	}
	m.excused = true
	l.lease.Owe(n)
}

// Release takes any lease; some stay, to be used and released again.
func (m *machine) Release(t *rapid.T) {
	l := m.lease(t)
	require.Equal(t, m.ref.release(l.ref), l.lease.Release())
	if !m.rarely(t, "keep") {
		m.leases = slices.DeleteFunc(m.leases, func(o *leasePair) bool { return o == l })
	}
}

func (m *machine) Cancel(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("nobody waits")
	}
	c := rapid.SampledFrom(m.calls).Draw(t, "waiter")
	m.ref.cancel(c.ref)
	c.cancel()
}

func (m *machine) Pass(t *rapid.T) {
	m.pass(time.Duration(rapid.IntRange(1, 300).Draw(t, "ms")) * time.Millisecond)
}

func (m *machine) pass(d time.Duration) {
	m.ref.pass(d)
	<-time.After(d)
}

func (m *machine) Resize(t *rapid.T) {
	m.ref.capacity = rapid.Int64Range(60, 120).Draw(t, "capacity")
	m.ref.settle()
	m.excused = true
	m.pool.Resize(pool.Size{Capacity: m.ref.capacity, MaxQueued: m.ref.settings.MaxQueuedBytes})
}

func (m *machine) Shutdown(t *rapid.T) {
	switch rapid.IntRange(0, 49).Draw(t, "how") {
	case 48:
		m.ref.end(false)
		m.pool.Drain()
	case 49:
		m.ref.end(true)
		m.pool.Close()
	default:
		t.Skip("most pools live on")
	}
}

func (m *machine) rarely(t *rapid.T, what string) bool {
	return rapid.IntRange(0, 7).Draw(t, what) == 7
}

func (m *machine) gate(t *rapid.T) int {
	return rapid.SampledFrom([]int{noGate, 0, 1}).Draw(t, "gate")
}

func (m *machine) lease(t *rapid.T) *leasePair {
	if len(m.leases) == 0 {
		t.Skip("nothing was granted yet")
	}
	return rapid.SampledFrom(m.leases).Draw(t, "lease")
}

// who draws a caller. Two waits that end at the same moment end in any order, which no reference could
// foretell, so the clock moves on by a step that keeps them apart.
func (m *machine) who(t *rapid.T) caller {
	who := callers.Draw(t, "caller")
	for {
		ends, taken := m.ref.now+min(m.ref.settings.QueueTimeout, who.left/4), false
		for _, c := range m.ref.waiting() {
			taken = taken || c.joined+c.allowed == ends
		}
		if !taken {
			return who
		}
		m.pass(time.Millisecond)
	}
}

// Check runs after every step.
func (m *machine) Check(t *rapid.T) {
	synctest.Wait()

	// Everybody was told the same on both sides, once, and nobody else waits.
	waiting := m.calls[:0]
	for _, c := range m.calls {
		require.Equal(t, int(count(c.ref.answered)), c.answers, "answers to %+v", *c.ref)
		require.Equal(t, c.ref.result, c.result)
		switch {
		case !c.ref.answered:
			waiting = append(waiting, c)
		default:
			c.cancel()
			if c.isNew && c.result.Outcome == pool.Granted {
				m.leases = append(m.leases, &c.leasePair)
			}
		}
	}
	m.calls = waiting

	// The ledger is the sum of its leases, by account and gate too.
	got := m.pool.Stats()
	got.Existing, got.Coming = 0, 0 // the audit counts them
	want := pool.Stats{
		Held: m.ref.held(), Capacity: m.ref.capacity, Used: m.ref.used(), Slots: m.ref.settings.Slots,
		Queued: int64(len(m.ref.line)), MaxQueued: m.ref.settings.MaxQueued, Growing: int64(len(m.ref.growth)),
	}
	for _, c := range m.ref.line {
		want.QueuedBytes += c.bytes
	}
	require.Equal(t, want, got)
	for i := range m.accounts {
		held, used := m.pool.AccountStats(&m.accounts[i])
		wantHeld, wantUsed := m.ref.account(i)
		require.Equal(t, [...]int64{wantHeld, wantUsed}, [...]int64{held, used}, "account %d", i)
	}
	for i, g := range m.gates {
		bytes, used, limit := m.pool.GateStats(g)
		wantBytes, wantUsed := m.ref.gate(i)
		require.Equal(t, [...]int64{wantBytes, wantUsed, m.ref.gates[i]}, [...]int64{bytes, used, limit}, "gate %d", i)
	}

	// Nothing is over its limit, unless this step was allowed to or nothing came on top.
	if !m.excused {
		require.LessOrEqual(t, got.Held, max(got.Capacity, m.before.Held))
		require.LessOrEqual(t, got.Used, max(got.Slots, m.before.Used))
	}
	m.before, m.excused = got, false

	// Nobody waits who could be served.
	next := m.ref.next(m.ref.growth)
	if next == nil {
		next = m.ref.next(m.ref.line)
	}
	if next != nil {
		slotFree := !next.slot || got.Used < got.Slots
		bytesFree := next.bytes == 0 || got.Held+next.bytes <= got.Capacity
		require.False(t, slotFree && bytesFree, "%+v fits and waits", *next)
	}
}

// finish releases everything, those included that are granted by it, and finds nothing left.
func (m *machine) finish(t *rapid.T) {
	m.pass(2 * m.ref.settings.QueueTimeout)
	m.Check(t)
	require.Empty(t, m.calls)
	for _, l := range m.leases {
		m.ref.release(l.ref)
		l.lease.Release()
		m.Check(t)
	}
	got := m.pool.Stats()
	require.Equal(t, pool.Stats{Capacity: got.Capacity, Slots: got.Slots, MaxQueued: got.MaxQueued}, got)
}

// abandon lets those who wait go, so that a bubble whose test has failed ends.
func (m *machine) abandon() {
	for _, c := range m.calls {
		c.cancel()
	}
}
