// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// settings are those of most tests: small, without limits.
func settings() tenant.Settings[string] {
	return tenant.Settings[string]{
		MaxTracked: 3, IdleTimeout: time.Minute,
		Defaults: tenant.Ceilings{Weight: 1, MaxConcurrent: 64},
	}
}

func to[T any](v T) *T { return &v }

// names are those of the tracked tenants, in order.
func names[A any](r *tenant.Registry[A]) (names []string) {
	for t := range r.All() {
		if t != r.Default() && t != r.Overflow() {
			names = append(names, t.Name())
		}
	}
	slices.Sort(names)
	return names
}

// sweepAll looks at every tenant of a small registry once.
func sweepAll[A any](r *tenant.Registry[A]) int { return r.Sweep(time.Now()) }

func TestGetReturnsTheSameTenant(t *testing.T) {
	s := settings()
	s.Init = func(t *tenant.Tenant[string]) {
		t.Value = t.Name() + " of " + strconv.FormatInt(t.Ceilings().MaxConcurrent, 10)
	}
	r := tenant.New(s)
	a := r.Get("a", true)
	assert.Same(t, a, r.Get("a", true))
	assert.Equal(t, "a of 64", a.Value)
	assert.Equal(t, s.Defaults, *a.Ceilings())
	assert.EqualValues(t, 1, r.Len())
	assert.Equal(t, []string{"a"}, names(r))
}

func TestGetKeepsTheRegistrysOwnTwo(t *testing.T) {
	s := settings()
	s.Init = func(t *tenant.Tenant[string]) { t.Value = "made" }
	r := tenant.New(s)
	for _, trusted := range []bool{false, true} {
		assert.Same(t, r.Default(), r.Get("", trusted))
		assert.Same(t, r.Default(), r.Get("default", trusted))
		assert.Same(t, r.Overflow(), r.Get("_overflow", trusted))
	}
	assert.Equal(t, "made", r.Default().Value)
	assert.Equal(t, "made", r.Overflow().Value)
	assert.False(t, r.Default().Untrusted(), "nobody invented it")
	assert.True(t, r.Overflow().Untrusted())
	assert.Zero(t, r.Len())
	r.Default().Unpin()
	r.Default().Unpin() // harmless
}

// TestHeaderDoesNotSpendWhatBelongsToTheAuthenticated: who sends another's name in a header gets a tenant
// of its own.
func TestHeaderDoesNotSpendWhatBelongsToTheAuthenticated(t *testing.T) {
	s := settings()
	s.Defaults.Rate = tenant.Rate{Requests: 1}
	r := tenant.New(s)
	r.SetOverrides(map[string]tenant.Override{"acme": {Weight: to(5.0)}})
	real, claimed := r.Get("acme", true), r.Get("acme", false)
	require.NotSame(t, real, claimed)
	assert.Equal(t, tenant.Taken, claimed.Take(time.Now(), tenant.Amounts{Requests: 1}).Outcome)
	assert.Equal(t, tenant.Missing, claimed.Take(time.Now(), tenant.Amounts{Requests: 1}).Outcome)
	assert.Equal(t, tenant.Taken, real.Take(time.Now(), tenant.Amounts{Requests: 1}).Outcome)
	assert.Equal(t, real.Ceilings(), claimed.Ceilings())

	assert.True(t, r.Get("b", false).Untrusted())
	assert.False(t, r.Get("b", true).Untrusted())
	assert.False(t, claimed.Untrusted(), "an override vouches for it")
}

// TestNamesDoNotKeepRequestsAlive: a name may be a few bytes out of a large request.
func TestNamesDoNotKeepRequestsAlive(t *testing.T) {
	request := strings.Repeat("x", 1<<10)
	r := tenant.New(settings())
	name := request[10:20]
	assert.NotSame(t, unsafe.StringData(name), unsafe.StringData(r.Get(name, false).Name()))
}

func TestFullRegistrySharesOneTenant(t *testing.T) {
	r := tenant.New(settings())
	for _, name := range []string{"a", "b", "c"} {
		r.Get(name, false)
	}
	for _, name := range []string{"d", "e", "f"} {
		assert.Same(t, r.Overflow(), r.Get(name, false))
		assert.Same(t, r.Overflow(), r.Get(name, true))
	}
	assert.NotSame(t, r.Overflow(), r.Get("a", false))
	assert.EqualValues(t, 3, r.Len())
}

func TestConfiguredTenantsAlwaysFindAPlace(t *testing.T) {
	r := tenant.New(settings())
	r.SetOverrides(map[string]tenant.Override{"acme": {}, "globex": {}})
	r.Get("a", false)
	assert.Same(t, r.Overflow(), r.Get("b", false), "two of three places are kept")
	for _, name := range []string{"acme", "globex"} {
		assert.True(t, r.Get(name, false).Configured())
	}
	assert.EqualValues(t, 3, r.Len())
}

func TestTrustedNamesFindAPlaceBesideInventedOnes(t *testing.T) {
	s := settings()
	s.MaxUntrusted = 2
	r := tenant.New(s)
	for i := range 100 {
		r.Get("invented-"+strconv.Itoa(i), false)
	}
	assert.EqualValues(t, 2, r.Len())
	assert.NotSame(t, r.Overflow(), r.Get("a", true))
	assert.Same(t, r.Overflow(), r.Get("b", true), "they are bounded too")
}

func TestOverridesReachLiveTenants(t *testing.T) {
	s := settings()
	var told []string
	s.Changed = func(t *tenant.Tenant[string]) {
		told = append(told, t.Name()+" "+strconv.FormatInt(t.Ceilings().MaxConcurrent, 10))
	}
	r := tenant.New(s)
	a, b := r.Get("a", false), r.Get("b", false)

	r.SetOverrides(map[string]tenant.Override{"a": {MaxConcurrent: to[int64](7)}})
	assert.Equal(t, []string{"a 7"}, told)
	assert.EqualValues(t, 7, a.Ceilings().MaxConcurrent)
	assert.EqualValues(t, 1, a.Ceilings().Weight)
	assert.True(t, a.Configured())
	assert.False(t, b.Configured())

	r.SetOverrides(map[string]tenant.Override{"a": {MaxConcurrent: to[int64](7)}})
	assert.Len(t, told, 1, "nothing has changed")
	r.SetOverrides(map[string]tenant.Override{"default": {MaxConcurrent: to[int64](1)}, "_overflow": {Weight: to(2.0)}})
	slices.Sort(told)
	assert.Equal(t, []string{"_overflow 64", "a 64", "a 7", "default 1"}, told)
	assert.True(t, a.Untrusted())

	long := strings.Repeat("x", 10*tenant.MaxName)
	r.SetOverrides(map[string]tenant.Override{long: {Weight: to(3.0)}})
	name, _ := tenant.Identity(long)
	assert.EqualValues(t, 3, r.Get(name, false).Ceilings().Weight)
	assert.Same(t, r.Get(name, false), r.Get(long, false))
}

func TestIdleTenantsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tenant.New(settings())
		a := r.Get("a", false)
		b := r.Get("b", false)
		b.Unpin()
		sweepAll(r)
		<-time.After(time.Minute - 1)
		assert.Zero(t, sweepAll(r), "not idle for long enough")
		<-time.After(1)
		assert.Equal(t, 1, sweepAll(r))
		assert.Equal(t, []string{"a"}, names(r), "a is pinned")

		a.Unpin()
		r.Get("a", false).Unpin()
		assert.Zero(t, sweepAll(r), "idle since now")
		<-time.After(time.Hour)
		assert.Equal(t, 1, sweepAll(r))
		assert.Zero(t, r.Len())
		assert.NotSame(t, a, r.Get("a", false))
		assert.Panics(t, a.Unpin)
	})
}

// TestForgettingRefundsNothing: tokens that are spent and a breaker that is open outlast any idling.
func TestForgettingRefundsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings()
		s.Defaults.Rate = tenant.Rate{Requests: 0.001, Burst: 10_000 * time.Second}
		s.Defaults.Breaker = tenant.Breaker{Breaches: 1, Window: 2 * time.Hour, Cooldown: time.Hour}
		r := tenant.New(s)
		a := r.Get("a", false)
		a.Take(time.Now(), tenant.Amounts{Requests: 10})
		a.Unpin()
		b := r.Get("b", false)
		p, _, _ := b.Allow(time.Now())
		assert.True(t, b.Report(time.Now(), p, tenant.Breach))
		b.Unpin()
		sweepAll(r)
		<-time.After(10_000*time.Second - 1)
		assert.Zero(t, sweepAll(r))
		<-time.After(1)
		assert.Equal(t, 1, sweepAll(r))
		assert.Equal(t, []string{"b"}, names(r), "its cooldown is over, its probe is not back")

		b = r.Get("b", false)
		p, _, _ = b.Allow(time.Now())
		b.Report(time.Now(), p, tenant.Fine)
		p, _, _ = b.Allow(time.Now())
		b.Report(time.Now(), p, tenant.Fine)
		b.Unpin()
		sweepAll(r)
		<-time.After(time.Minute)
		assert.Equal(t, 1, sweepAll(r))
	})
}

// TestSweepIsBounded: one call looks at a part, all calls together at everything.
func TestSweepIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings()
		s.MaxTracked = 10_000
		r := tenant.New(s)
		for i := range s.MaxTracked {
			r.Get(strconv.FormatInt(i, 10), i%2 == 0).Unpin()
		}
		for range 10 {
			sweepAll(r)
		}
		<-time.After(time.Minute)
		var forgotten []int
		for r.Len() > 0 && len(forgotten) < 100 {
			forgotten = append(forgotten, sweepAll(r))
		}
		assert.Equal(t, []int{1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 784}, forgotten)
	})
}

// TestInventedNamesCostNothing asks for a million names, as an attacker would, and looks at the heap.
func TestInventedNamesCostNothing(t *testing.T) {
	const tracked, invented = 10_000, 1_000_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s := settings()
	s.MaxTracked = tracked
	r := tenant.New(s)
	r.SetOverrides(map[string]tenant.Override{"acme": {Weight: to(2.0)}})
	invent := func(from, to int) {
		for i := from; i < to; i++ {
			name, _ := tenant.Identity(strings.Repeat("attack-", 20) + strconv.Itoa(i))
			r.Get(name, false).Unpin()
		}
	}
	before := heap()
	invent(0, tracked)
	full := heap()
	invent(tracked, invented)
	after := heap()
	t.Logf("%d bytes a tenant; %d more for %d names beyond", int64(full-before)/tracked, int64(after-full), invented-tracked)
	assert.Less(t, int64(full-before), int64(tracked*2048))
	assert.Less(t, int64(after)-int64(full), int64(1<<20))
	assert.EqualValues(t, tracked-1, r.Len())

	acme := r.Get("acme", false)
	assert.NotSame(t, r.Overflow(), acme)
	assert.EqualValues(t, 2, acme.Ceilings().Weight)
	unknown := strings.Repeat("attack-", 20)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.Get(unknown, false).Unpin() }))
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.Get("acme", false).Unpin() }))
	runtime.KeepAlive(r)
}
