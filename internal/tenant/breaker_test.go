// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// seed is the breaker that the design starts with.
var seed = tenant.Breaker{Breaches: 8, Window: 10 * time.Second, Ratio: 0.5, Cooldown: 5 * time.Second}

// offender is a tenant under a breaker, in virtual time.
type offender struct {
	*tenant.Tenant[string]
	t *testing.T
	r *tenant.Registry[string]
}

func breakers(t *testing.T, b tenant.Breaker, test func(o offender)) {
	synctest.Test(t, func(t *testing.T) {
		s := settings()
		s.Defaults.Breaker = b
		r := tenant.New(s)
		test(offender{r.Get("a", false), t, r})
	})
}

// allow returns the pass of a batch that must be let through.
func (o offender) allow() tenant.Pass {
	o.t.Helper()
	p, d, ok := o.Allow(time.Now())
	assert.True(o.t, ok, "%+v", d)
	return p
}

// batches sends n that end in this way.
func (o offender) batches(n int, out tenant.Outcome) {
	o.t.Helper()
	for range n {
		o.Report(time.Now(), o.allow(), out)
	}
}

// shut says that the next batch is refused, and returns for how long.
func (o offender) shut() tenant.Denial {
	o.t.Helper()
	_, d, ok := o.Allow(time.Now())
	assert.False(o.t, ok)
	assert.Positive(o.t, d.Remaining)
	checked, ok := o.Check(time.Now())
	assert.False(o.t, ok)
	assert.Equal(o.t, d, checked)
	assert.True(o.t, o.Open())
	return d
}

// cool waits until a probe is let through.
func (o offender) cool() { o.t.Helper(); <-time.After(o.shut().Remaining) }

func TestBreakerOpensAtTheEighthBreach(t *testing.T) {
	breakers(t, seed, func(o offender) {
		for range 7 {
			o.batches(1, tenant.Breach)
			<-time.After(time.Second)
		}
		assert.False(t, o.Open())
		assert.True(t, o.Report(time.Now(), o.allow(), tenant.Breach))
		d := o.shut()
		assert.EqualValues(t, 8, d.Breaches)
		assert.EqualValues(t, 8, d.Allowed)
		assert.Greater(t, d.Remaining, 5*time.Second)
		assert.LessOrEqual(t, d.Remaining, 6*time.Second+1)

		<-time.After(time.Second)
		assert.Equal(t, d.Remaining-time.Second, o.shut().Remaining)
		<-time.After(d.Remaining - time.Second - 1)
		assert.EqualValues(t, 1, o.shut().Remaining)
		<-time.After(1)
		_, ok := o.Check(time.Now())
		assert.True(t, ok)
		o.allow()
		o.shut()
	})
}

// TestBreakerRolls: eight breaches count together whatever the moments, if one window holds them, and
// never if they are further apart than that and a step.
func TestBreakerRolls(t *testing.T) {
	for offset := time.Duration(1); offset < seed.Window; offset += 217 * time.Millisecond {
		for apart, want := range map[time.Duration]bool{
			seed.Window / 7:                       true, // first to eighth
			seed.Window*17/112 + time.Millisecond: false,
		} {
			breakers(t, seed, func(o offender) {
				<-time.After(offset)
				for range 8 {
					o.batches(1, tenant.Breach)
					<-time.After(apart)
				}
				assert.Equal(t, want, o.Open(), "%v apart from %v on", apart, offset)
			})
		}
	}
}

func TestBreakerIgnoresOneOversizedInAHundred(t *testing.T) {
	breakers(t, seed, func(o offender) {
		for range 100 { // a hundred breaches in 10 s
			o.batches(99, tenant.Fine)
			o.batches(1, tenant.Breach)
			<-time.After(100 * time.Millisecond)
		}
		assert.False(t, o.Open())
	})
}

func TestBreakerCountsBatchesBeforeTheFirstBreach(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(9, tenant.Fine)
		o.batches(8, tenant.Breach)
		assert.False(t, o.Open(), "8 of 17")
		o.batches(1, tenant.Breach)
		assert.True(t, o.Open(), "9 of 18")
	})
}

func TestBreakerIsNotFedByRefusals(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(1000, tenant.Undecided) // for rate, concurrency, or because the caller went away
		assert.False(t, o.Open())
		o.batches(8, tenant.Breach)
		assert.True(t, o.Open(), "they do not count as batches either")
	})
}

func TestProbeDecides(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(8, tenant.Breach)
		first := o.shut()
		o.cool()
		assert.True(t, o.Report(time.Now(), o.allow(), tenant.Breach), "it opens again")
		again := o.shut()
		assert.Greater(t, again.Remaining, 5*time.Second)
		assert.Equal(t, first.Breaches, again.Breaches)
		o.cool()
		assert.False(t, o.Report(time.Now(), o.allow(), tenant.Fine))
		assert.False(t, o.Open())
		o.batches(7, tenant.Breach)
		assert.False(t, o.Open(), "it starts anew")
		o.batches(1, tenant.Breach)
		o.shut()
	})
}

// TestBreakerStartsAnewOnceClosed: the breaches that opened it are still within the window then.
func TestBreakerStartsAnewOnceClosed(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(8, tenant.Breach)
		o.cool()
		o.batches(1, tenant.Fine)
		o.batches(7, tenant.Breach)
		assert.False(t, o.Open())
		o.batches(1, tenant.Breach)
		o.shut()
	})
}

func TestUndecidedProbeIsHandedOn(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(8, tenant.Breach)
		o.cool()
		for range 100 {
			p := o.allow()
			o.shut()
			o.Report(time.Now(), p, tenant.Undecided)
		}
		o.batches(1, tenant.Fine)
		assert.False(t, o.Open())
	})
}

func TestLostProbeIsReplaced(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(8, tenant.Breach)
		o.cool()
		lost := o.allow()
		d := o.shut()
		assert.Greater(t, d.Remaining, 5*time.Second-1)
		o.cool()
		probe := o.allow()
		o.shut()
		o.Report(time.Now(), lost, tenant.Breach) // it is back, and nobody waits for it any more
		o.Report(time.Now(), lost, tenant.Fine)
		o.shut()
		o.Report(time.Now(), probe, tenant.Fine)
		o.Report(time.Now(), probe, tenant.Breach)
		assert.False(t, o.Open())
	})
}

// TestBreakerForgetsWhatWasBefore: batches that were let through before it opened decide nothing later.
func TestBreakerForgetsWhatWasBefore(t *testing.T) {
	breakers(t, seed, func(o offender) {
		var before []tenant.Pass
		for range 100 {
			before = append(before, o.allow())
		}
		o.batches(8, tenant.Breach)
		o.Report(time.Now(), before[0], tenant.Fine)
		o.shut()
		o.cool()
		probe := o.allow()
		o.Report(time.Now(), before[1], tenant.Fine)
		o.Report(time.Now(), before[2], tenant.Breach)
		o.shut()
		o.Report(time.Now(), probe, tenant.Fine)
		for _, p := range before[3:] {
			o.Report(time.Now(), p, tenant.Breach)
		}
		assert.False(t, o.Open())
	})
}

func TestBreakerFollowsItsCeilings(t *testing.T) {
	breakers(t, seed, func(o offender) {
		o.batches(3, tenant.Breach)
		o.r.SetOverrides(map[string]tenant.Override{"a": {Breaker: tenant.BreakerOverride{Breaches: to[int64](4), Cooldown: to(time.Minute)}}})
		o.batches(1, tenant.Breach)
		d := o.shut()
		assert.EqualValues(t, 4, d.Allowed)
		assert.Greater(t, d.Remaining, time.Minute)

		o.r.SetOverrides(nil)
		assert.Equal(t, d.Remaining, o.shut().Remaining, "it was told so")
		o.r.SetOverrides(map[string]tenant.Override{"a": {Breaker: tenant.BreakerOverride{Breaches: to[int64](0)}}})
		assert.False(t, o.Open())
		o.batches(1000, tenant.Breach)
		assert.False(t, o.Open())
	})
}

func TestTheRegistrysOwnTwoHaveNoBreaker(t *testing.T) {
	breakers(t, seed, func(o offender) {
		for _, own := range []*tenant.Tenant[string]{o.r.Default(), o.r.Overflow()} {
			o.Tenant = own
			o.batches(1000, tenant.Breach)
			assert.False(t, o.Open())
		}
	})
}
