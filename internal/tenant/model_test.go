// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// kept is what a naive registry knows of a tenant.
type kept struct {
	tenant *tenant.Tenant[int]
	pins   int
	spent  time.Time // when its bucket is full again
	idle   time.Time // since when a sweep has found it idle; zero: in use
}

type source struct {
	name    string
	trusted bool
}

// TestRegistryModel compares a registry with a map.
func TestRegistryModel(t *testing.T) {
	name := rapid.Map(rapid.IntRange(0, 9), strconv.Itoa)
	rapid.Check(t, func(t *rapid.T) {
		const idle = time.Minute
		settings := tenant.Settings[int]{
			MaxTracked: 5, MaxUntrusted: rapid.Int64Range(0, 5).Draw(t, "untrusted"), IdleTimeout: idle,
			Defaults: tenant.Ceilings{Weight: 1, Rate: tenant.Rate{Requests: 0.01, Burst: 500 * time.Second}},
		}
		made, now := 0, time.Now().Add(time.Hour) // a rapid test cannot run in a bubble: its clock is ahead
		settings.Init = func(t *tenant.Tenant[int]) { made++; t.Value = made }
		r := tenant.New(settings)
		model, overrides := map[source]*kept{}, map[string]tenant.Override{}
		var pinned []source // one for each pin
		counts := func() (invented, untrusted int64) {
			for s := range model {
				if _, configured := overrides[s.name]; configured {
					continue
				}
				invented++
				if !s.trusted {
					untrusted++
				}
			}
			return invented, untrusted
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				s := source{name.Draw(t, "name"), rapid.Bool().Draw(t, "trusted")}
				k := model[s]
				got := r.Get(s.name, s.trusted)
				if k == nil {
					invented, untrusted := counts()
					_, configured := overrides[s.name]
					most := settings.MaxUntrusted
					if most == 0 {
						most = settings.MaxTracked
					}
					if !configured && (invented >= settings.MaxTracked-int64(len(overrides)) || !s.trusted && untrusted >= most) {
						if got != r.Overflow() {
							t.Fatalf("%v has found a place", s)
						}
						return
					}
					k = &kept{tenant: got}
					model[s] = k
					if got.Name() != s.name || got.Value != made {
						t.Fatalf("%v is %q", s, got.Name())
					}
				}
				if got != k.tenant {
					t.Fatalf("%v is another", s)
				}
				k.pins++
				k.idle = time.Time{}
				pinned = append(pinned, s)
			},
			"unpin": func(t *rapid.T) {
				if len(pinned) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(pinned)-1).Draw(t, "pin")
				k := model[pinned[i]]
				pinned = append(pinned[:i], pinned[i+1:]...)
				k.tenant.Unpin()
				k.pins--
				k.idle = time.Time{}
			},
			"spend": func(t *rapid.T) {
				if len(pinned) == 0 {
					t.Skip()
				}
				k := model[rapid.SampledFrom(pinned).Draw(t, "who")]
				if k.tenant.Take(now, tenant.Amounts{Requests: 1}).Outcome == tenant.Taken {
					if k.spent.Before(now) {
						k.spent = now
					}
					k.spent = k.spent.Add(100 * time.Second)
				}
			},
			"sweep": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "after")) * time.Second)
				want := 0
				got := r.Sweep(now)
				for s, k := range model {
					if k.pins > 0 {
						continue
					}
					if k.idle.IsZero() {
						k.idle = now
					}
					if now.Sub(k.idle) >= idle && !k.spent.After(now) {
						want++
						delete(model, s)
					}
				}
				if got != want {
					t.Fatalf("%d were forgotten, want %d", got, want)
				}
			},
			"override": func(t *rapid.T) {
				overrides = rapid.MapOfN(name, rapid.Map(rapid.Float64Range(1, 2), func(w float64) tenant.Override {
					return tenant.Override{Weight: &w}
				}), 0, 3).Draw(t, "overrides")
				r.SetOverrides(overrides)
			},
			"": func(t *rapid.T) {
				if r.Len() != int64(len(model)) {
					t.Fatalf("%d tenants, want %d", r.Len(), len(model))
				}
				found := 0
				for got := range r.All() {
					if got == r.Default() || got == r.Overflow() {
						continue
					}
					found++
					o, configured := overrides[got.Name()]
					if got.Configured() != configured || *got.Ceilings() != o.Over(settings.Defaults) {
						t.Fatalf("%q has %+v", got.Name(), got.Ceilings())
					}
				}
				if found != len(model) {
					t.Fatalf("%d tenants to be seen, want %d", found, len(model))
				}
			},
		})
	})
}

// TestRegistryRaces does everything at once and counts what every tenant holds: nobody who is pinned is
// forgotten, so that there are never two tenants of one name in use.
func TestRegistryRaces(t *testing.T) {
	const names, workers, rounds = 20, 8, 125_000
	type held struct{ inUse atomic.Int64 }
	s := tenant.Settings[held]{
		MaxTracked: names / 2,
		Defaults: tenant.Ceilings{
			Weight:  1,
			Rate:    tenant.Rate{Requests: 1e9, Burst: time.Second},
			Breaker: tenant.Breaker{Breaches: 8, Window: 10 * time.Microsecond, Ratio: 0.5, Cooldown: time.Millisecond},
		},
		Init:    func(t *tenant.Tenant[held]) { t.Value.inUse.Store(0) },
		Changed: func(t *tenant.Tenant[held]) { t.Value.inUse.Add(0) },
	}
	r := tenant.New(s)
	var users [names]struct {
		sync.Mutex
		n  int
		is *tenant.Tenant[held]
	}
	use := func(rnd *rand.Rand) {
		i := rnd.IntN(names)
		got := r.Get(strconv.Itoa(i), i%2 == 0)
		if got != r.Overflow() {
			users[i].Lock()
			if users[i].n++; users[i].n > 1 && users[i].is != got {
				t.Errorf("two tenants are %d", i)
			}
			users[i].is = got
			users[i].Unlock()
		}
		got.Value.inUse.Add(1)
		now := time.Now()
		if p, _, ok := got.Allow(now); ok {
			a := tenant.Amounts{Requests: rnd.Int64N(3)}
			if got.Take(now, a).Outcome == tenant.Taken {
				got.Refund(a)
			}
			got.Report(now, p, tenant.Outcome(rnd.IntN(3)))
		}
		got.Value.inUse.Add(-1)
		if got != r.Overflow() {
			users[i].Lock()
			users[i].n--
			users[i].Unlock()
		}
		got.Unpin()
	}
	var wg sync.WaitGroup
	var forgotten atomic.Int64
	stop := make(chan struct{})
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range rounds {
				use(rnd)
				if i%100 == 0 {
					forgotten.Add(int64(r.Sweep(time.Now())))
				}
			}
		})
	}
	var background sync.WaitGroup
	background.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			w := float64(i%3 + 1)
			r.SetOverrides(map[string]tenant.Override{fmt.Sprint(i % names): {Weight: &w}})
			for got := range r.All() {
				_, _ = got.Untrusted(), got.Open()
			}
		}
	})
	wg.Wait()
	close(stop)
	background.Wait()
	r.SetOverrides(nil)
	for got := range r.All() {
		assert.Zero(t, got.Value.inUse.Load())
	}
	t.Logf("%d were forgotten", forgotten.Load())
	assert.Positive(t, forgotten.Load())
}
