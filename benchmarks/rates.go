// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// often is a rate, in requests per second, that refuses nobody.
const often = 1e9

func takeRate(b *testing.B) {
	r := tenant.New(tenant.Settings[struct{}]{MaxTracked: 1, Defaults: tenant.Ceilings{
		Rate: tenant.Rate{Requests: often, Burst: time.Second},
	}})
	t := r.Get("acme", false)
	takes(b, func(now time.Time) bool { return t.Take(now, tenant.Amounts{Requests: 1}).Outcome == tenant.Taken })
}

func allowRate(b *testing.B) {
	l := rate.NewLimiter(often, often)
	takes(b, func(now time.Time) bool { return l.AllowN(now, 1) })
}

// refuseToken is the whole decision on a tenant over its rate: who it is, whether its breaker is open, and its tokens.
func refuseToken(b *testing.B) {
	r := tenant.New(tenant.Settings[struct{}]{MaxTracked: 1, Defaults: tenant.Ceilings{
		Rate: tenant.Rate{Requests: 0.001, Burst: time.Second},
	}})
	now := time.Now()
	r.Get("acme", false).Take(now, tenant.Amounts{Requests: 1})
	for b.Loop() {
		t := r.Get("acme", false)
		if _, _, ok := t.Allow(now); !ok || t.Take(now, tenant.Amounts{Requests: 1}).Outcome != tenant.Missing {
			panic("let in")
		}
		t.Unpin()
	}
}

// takes takes a token every 100 ns. Reading the clock is not part of it: the governor does it once for all gates.
func takes(b *testing.B, take func(now time.Time) bool) {
	now := time.Now()
	for b.Loop() {
		now = now.Add(100)
		if !take(now) {
			panic("no token")
		}
	}
}
