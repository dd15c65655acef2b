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

// TestAccountsAgainstRecount gives random commands of several accounts to a pool. There is no reference that
// foretells each answer; after every step all that the pool keeps a figure of is counted anew, everybody who
// waits is looked at, and everybody has been answered at most once.
func TestAccountsAgainstRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			c := newCrowd(t)
			t.Cleanup(c.abandon)
			t.Repeat(rapid.StateMachineActions(c))
			c.finish(t)
		})
	})
}

// crowd is a pool and all that was ever asked of it.
type crowd struct {
	pool     *pool.Pool
	settings pool.Settings
	capacity int64
	accounts []*pool.Account
	limits   []pool.Limits
	gate     *pool.Gate
	leases   []*pool.Lease
	held     []*pool.Lease // granted and not released
	calls    []*crowdCall
	carried  map[*pool.Account]int64
	owed     int64
	loose    bool // ceilings may be exceeded from now on
}

type crowdCall struct {
	lease   *pool.Lease // if it makes one
	cancel  context.CancelFunc
	answers int
	result  pool.Result
}

var someLimits = rapid.SampledFrom([]pool.Limits{
	{},
	{Weight: 3},
	{Weight: 0.5},
	{Stranger: true},
	{Fraction: 0.5},
	{Slots: 2},
	{Queued: 2},
	{Queued: 20},
	{Stranger: true, Fraction: 0.3, Slots: 3},
	{Weight: 2, Fraction: 0.7, Slots: 3, Queued: 12},
})

func newCrowd(t *rapid.T) *crowd {
	s := pool.Settings{
		Capacity:       100,
		Slots:          rapid.SampledFrom([]int64{8, 3, 20}).Draw(t, "slots"),
		MaxQueued:      rapid.SampledFrom([]int64{10, 4, 30, 0}).Draw(t, "max queued"),
		MaxQueuedBytes: rapid.SampledFrom([]int64{400, 100}).Draw(t, "max queued bytes"),
		QueueTimeout:   time.Second,
	}
	c := &crowd{pool: pool.New(s), settings: s, capacity: s.Capacity, gate: pool.NewGate(2), carried: map[*pool.Account]int64{}}
	for range 6 {
		l := someLimits.Draw(t, "limits")
		c.accounts, c.limits = append(c.accounts, pool.NewAccount(l)), append(c.limits, l)
	}
	return c
}

func (c *crowd) call(t *rapid.T, made *pool.Lease, f func(context.Context) pool.Result) {
	ctx, cancel := context.WithCancel(context.Background())
	if rapid.IntRange(0, 5).Draw(t, "short of time") == 0 {
		ctx, cancel = context.WithTimeout(context.Background(), 800*time.Millisecond)
	}
	call := &crowdCall{lease: made, cancel: cancel}
	c.calls = append(c.calls, call)
	go func() {
		call.result = f(ctx)
		call.answers++
	}()
}

// request draws one with up to two others in it.
func (c *crowd) request(t *rapid.T) pool.Request {
	order := rapid.Permutation(c.accounts).Draw(t, "accounts")
	r := pool.Request{Account: order[0], Bytes: sizes.Draw(t, "bytes")}
	left := r.Bytes
	for _, other := range order[1 : 1+rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "others")] {
		n := rapid.Int64Range(0, left/2).Draw(t, "share")
		left -= n
		r.Others = append(r.Others, pool.Share{Account: other, Bytes: n})
	}
	if rapid.IntRange(0, 3).Draw(t, "gate") == 0 {
		r.Gate = c.gate
	}
	if r.Debt = rapid.IntRange(0, 15).Draw(t, "debt") == 0; r.Debt {
		c.loose = true
	}
	return r
}

func (c *crowd) Acquire(t *rapid.T) {
	r, l := c.request(t), new(pool.Lease)
	if r.Provisional = rapid.Bool().Draw(t, "provisional"); r.Provisional {
		r.Parked = rapid.Int64Range(0, r.Bytes).Draw(t, "parked")
		c.loose = true // its settlement may take it over
	}
	c.leases = append(c.leases, l)
	c.call(t, l, func(ctx context.Context) pool.Result { return c.pool.Acquire(ctx, l, r) })
}

func (c *crowd) AcquireAgain(t *rapid.T) { c.Acquire(t) } // more often than the rest

func (c *crowd) Grow(t *rapid.T) {
	l, n := c.lease(t), rapid.SampledFrom([]int64{30, 10, 50, 0, -10, -50}).Draw(t, "n")
	c.call(t, nil, func(ctx context.Context) pool.Result { return l.Grow(ctx, n) })
}

func (c *crowd) Settle(t *rapid.T) {
	l, r, part := c.lease(t), c.request(t), new(pool.Lease)
	c.leases = append(c.leases, part)
	c.call(t, part, func(ctx context.Context) pool.Result { return l.Settle(ctx, part, r) })
}

func (c *crowd) Owe(t *rapid.T) {
	l, n := c.lease(t), sizes.Draw(t, "n")
	c.loose = true
	l.Owe(n)
}

func (c *crowd) Release(t *rapid.T) {
	l := c.lease(t)
	var left []pool.Share
	for _, a := range c.accounts[:rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "left to")] {
		left = append(left, pool.Share{Account: a, Bytes: sizes.Draw(t, "left")})
		c.carry(a, left[len(left)-1].Bytes)
	}
	l.Release(left...)
	c.held = slices.DeleteFunc(c.held, func(o *pool.Lease) bool { return o == l })
}

func (c *crowd) carry(a *pool.Account, n int64) {
	c.loose = true // what ends as more than it was held as counts against ceilings too
	c.carried[a] += n
}

func (c *crowd) Carry(t *rapid.T) {
	a := rapid.SampledFrom(c.accounts).Draw(t, "account")
	n := rapid.Int64Range(-c.carried[a], 40).Draw(t, "bytes")
	c.carry(a, n)
	c.pool.Carry(a, n)
}

func (c *crowd) OweBeside(t *rapid.T) {
	n := rapid.Int64Range(-c.owed, 40).Draw(t, "bytes")
	c.owed += n
	c.pool.Owe(n)
}

func (c *crowd) Cancel(t *rapid.T) {
	if len(c.calls) == 0 {
		t.Skip("nobody waits")
	}
	rapid.SampledFrom(c.calls).Draw(t, "waiter").cancel()
}

func (c *crowd) Pass(*rapid.T) { <-time.After(130 * time.Millisecond) }

func (c *crowd) Resize(t *rapid.T) {
	c.loose = true
	c.capacity = rapid.Int64Range(50, 130).Draw(t, "capacity")
	c.pool.Resize(pool.Size{
		Capacity: c.capacity, MaxQueued: c.settings.MaxQueuedBytes,
		Best: rapid.Int64Range(0, 150).Draw(t, "best"), Squeezed: rapid.Bool().Draw(t, "squeezed"),
		Reserved: rapid.SampledFrom([]int64{0, 0, 20}).Draw(t, "reserved"),
	})
}

func (c *crowd) SetLimits(t *rapid.T) {
	c.loose = true
	i := rapid.IntRange(0, len(c.accounts)-1).Draw(t, "account")
	c.limits[i] = someLimits.Draw(t, "limits")
	c.pool.SetLimits(c.accounts[i], c.limits[i])
}

func (c *crowd) Shutdown(t *rapid.T) {
	switch rapid.IntRange(0, 59).Draw(t, "how") {
	case 58:
		c.pool.Drain()
	case 59:
		c.pool.Close()
	default:
		t.Skip("most pools live on")
	}
}

func (c *crowd) lease(t *rapid.T) *pool.Lease {
	if len(c.held) == 0 {
		t.Skip("nothing is held")
	}
	return rapid.SampledFrom(c.held).Draw(t, "lease")
}

// Check runs after every step.
func (c *crowd) Check(t *rapid.T) {
	synctest.Wait()
	waiting := c.calls[:0]
	for _, call := range c.calls {
		require.LessOrEqual(t, call.answers, 1)
		switch {
		case call.answers == 0:
			waiting = append(waiting, call)
			continue
		case call.lease != nil && call.result.Outcome == pool.Granted:
			c.held = append(c.held, call.lease)
		case call.lease != nil:
			call.lease.Release() // of what was refused: nothing
		}
		call.cancel()
	}
	c.calls = waiting
	require.NoError(t, c.pool.Audit(c.accounts, c.leases, c.carried))
	st := c.pool.Stats()
	require.EqualValues(t, len(c.calls), st.Queued+st.Growing, "who is not answered waits")
	require.LessOrEqual(t, st.Queued, st.MaxQueued)
	for i, a := range c.accounts {
		held, used := c.pool.AccountStats(a)
		if l := c.limits[i]; !c.loose && l.Fraction > 0 {
			require.LessOrEqual(t, held, int64(l.Fraction*float64(c.capacity)))
		}
		if l := c.limits[i]; !c.loose && l.Slots > 0 {
			require.LessOrEqual(t, used, l.Slots)
		}
	}
}

// finish lets everybody go and finds nothing left.
func (c *crowd) finish(t *rapid.T) {
	<-time.After(2 * c.settings.QueueTimeout)
	c.Check(t)
	require.Empty(t, c.calls)
	for _, l := range c.held {
		l.Release()
		c.Check(t)
	}
	for a, n := range c.carried {
		c.pool.Carry(a, -n)
		c.carried[a] = 0
		c.Check(t)
	}
	c.pool.Owe(-c.owed)
	st := c.pool.Stats()
	require.Equal(t, pool.Stats{Capacity: c.capacity, Slots: st.Slots, MaxQueued: st.MaxQueued}, st)
	bytes, passing, _ := c.pool.GateStats(c.gate)
	require.Zero(t, [...]int64{bytes, passing})
}

func (c *crowd) abandon() {
	for _, call := range c.calls {
		call.cancel()
	}
}
