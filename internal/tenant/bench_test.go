// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

func BenchmarkGet(b *testing.B) {
	const tracked = 10_000
	r := tenant.New(tenant.Settings[int]{MaxTracked: tracked})
	names := make([]string, tracked)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(i)
		r.Get(names[i], false).Unpin()
	}
	known := func(b *testing.B, next func() bool) {
		for i := 0; next(); i = (i + 1) & 1023 {
			r.Get(names[i], false).Unpin()
		}
	}
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		known(b, b.Loop)
	})
	b.Run("known parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) { known(b, pb.Next) })
	})
	b.Run("one parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.Get(names[0], false).Unpin()
			}
		})
	})
	b.Run("unknown when full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Get("invented-12345678", false).Unpin()
		}
	})
}

func BenchmarkRates(b *testing.B) {
	for _, bench := range []struct {
		name  string
		rate  tenant.Rate
		after tenant.Amounts
	}{
		{"none", tenant.Rate{}, tenant.Amounts{Requests: 1, Items: 100, Bytes: 10_000}},
		{"one", tenant.Rate{Requests: 1e9, Burst: time.Second}, tenant.Amounts{Requests: 1}},
		{"three", tenant.Rate{Requests: 1e9, Items: 1e11, Bytes: 1e12, Burst: time.Second}, tenant.Amounts{Requests: 1, Items: 100, Bytes: 10_000}},
	} {
		r := tenant.New(tenant.Settings[int]{MaxTracked: 1, Defaults: tenant.Ceilings{Rate: bench.rate}})
		t, now := r.Get("a", false), time.Now()
		b.Run("take and refund/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(100)
				t.Take(now, bench.after)
				t.Refund(bench.after)
			}
		})
		b.Run("take/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(100)
				t.Take(now, bench.after)
			}
		})
	}
	r := tenant.New(tenant.Settings[int]{MaxTracked: 1, Defaults: tenant.Ceilings{Rate: tenant.Rate{Requests: 1}}})
	t, now := r.Get("a", false), time.Now()
	t.Take(now, tenant.Amounts{Requests: 1})
	b.Run("take/refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.Take(now, tenant.Amounts{Requests: 1})
		}
	})
}

func BenchmarkBreaker(b *testing.B) {
	r := tenant.New(tenant.Settings[int]{MaxTracked: 2, Defaults: tenant.Ceilings{
		Breaker: tenant.Breaker{Breaches: 8, Window: 10 * time.Second, Ratio: 0.5, Cooldown: time.Hour},
	}})
	t, now := r.Get("a", false), time.Now()
	b.Run("closed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, _, _ := t.Allow(now)
			t.Report(now, p, tenant.Fine)
		}
	})
	shut := r.Get("b", true)
	for range 8 {
		p, _, _ := shut.Allow(now)
		shut.Report(now, p, tenant.Breach)
	}
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			shut.Allow(now)
		}
	})
}

func BenchmarkIdentity(b *testing.B) {
	for _, bench := range []struct {
		name   string
		values []string
	}{
		{"one", []string{"tenant-12345"}},
		{"two", []string{"tenant-12345", "production"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tenant.Identity(bench.values...)
			}
		})
	}
}
