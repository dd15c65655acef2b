// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap/zapcore"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadatatest"
	"github.com/otel-governor/otel-governor/internal/strict"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// from is a request's context of a client that sends these headers.
func from(ctx context.Context, headers ...string) context.Context {
	m := map[string][]string{}
	for i := 0; i < len(headers); i += 2 {
		m[headers[i]] = append(m[headers[i]], headers[i+1])
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(m)})
}

// authenticated is what an authenticator says of a client.
type authenticated map[string]any

func (a authenticated) GetAttribute(name string) any { return a[name] }

func (a authenticated) GetAttributeNames() []string { return nil }

// shared is a governor of 64 MiB that tells tenants apart by the header x-tenant.
func shared(t *testing.T, change func(*Config)) *tested {
	return start(t, func(c *Config) {
		size := int64(64 * mib)
		c.Memory.PoolSize = &size
		c.Tenants.MetadataKeys = []string{"x-tenant"}
		if change != nil {
			change(c)
		}
	})
}

func admit(t *testing.T, g *tested, name string, memory, items int64) (admission.Lease, error) {
	ctx := t.Context()
	if name != "" {
		ctx = from(ctx, "x-tenant", name)
	}
	return g.Admit(ctx, traces(memory, items))
}

func TestIdentify(t *testing.T) {
	auth := func(ctx context.Context, a authenticated) context.Context {
		info := client.FromContext(ctx)
		info.Auth = a
		return client.NewContext(ctx, info)
	}
	for name, tt := range map[string]struct {
		ctx  context.Context
		want string
		ok   bool
	}{
		"nothing":                     {t.Context(), "default", false},
		"a header":                    {from(t.Context(), "x-tenant", "acme"), "acme", true},
		"another header":              {from(t.Context(), "x-other", "acme"), "default", false},
		"an empty header":             {from(t.Context(), "x-tenant", ""), "default", false},
		"a header sent twice":         {from(t.Context(), "x-tenant", "a", "x-tenant", "b"), "7:1:a,1:b", true},
		"auth":                        {auth(t.Context(), authenticated{"sub": "acme"}), "acme", true},
		"auth goes before the header": {auth(from(t.Context(), "x-tenant", "evil"), authenticated{"sub": "acme"}), "acme", true},
		"auth that does not say":      {auth(from(t.Context(), "x-tenant", "acme"), authenticated{}), "acme", true},
		"auth of another type":        {auth(t.Context(), authenticated{"sub": 42}), "42", true},
		"auth with a list":            {auth(t.Context(), authenticated{"sub": []string{"a", "b"}}), "7:1:a,1:b", true},
		"a reserved name":             {from(t.Context(), "x-tenant", "default"), "7:default", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := shared(t, func(c *Config) { c.Tenants.AuthAttributes = []string{"sub"} })
			got, ok := g.Identify(tt.ctx)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.ok, ok)
		})
	}
	t.Run("several keys are one identity that nobody else can have", func(t *testing.T) {
		g := shared(t, func(c *Config) { c.Tenants.MetadataKeys = []string{"org", "env"} })
		a, _ := g.Identify(from(t.Context(), "org", "a", "env", "b,1:c"))
		b, _ := g.Identify(from(t.Context(), "org", "a,1:b", "env", "c"))
		require.NotEqual(t, a, b)
		one, ok := g.Identify(from(t.Context(), "env", "prod"))
		require.True(t, ok)
		require.Equal(t, "0:,4:prod", one)
	})
}

func TestCeilingsOfATenant(t *testing.T) {
	few, third := int64(2), 0.25
	change := func(c *Config) {
		c.Tenants.Defaults.MaxConcurrent = &few
		c.Tenants.Defaults.MemoryFraction = &third
		c.Tenants.Overrides = map[string]tenant.Override{
			"limited": {MaxBatchMemory: new(int64(mib)), MaxBatchItems: new(int64(10))},
		}
	}
	for name, tt := range map[string]struct {
		tenant          string
		held            []int64
		memory, items   int64
		reason          admission.Reason
		observed, limit int64
	}{
		"concurrency":                  {"a", []int64{mib, mib}, mib, 1, admission.TenantConcurrency, 2, 2},
		"memory":                       {"a", []int64{10 * mib}, 7 * mib, 1, admission.TenantMemory, 17 * mib, 16 * mib},
		"larger than the share":        {"a", nil, 17 * mib, 1, admission.MemoryLimit, 17 * mib, 16 * mib},
		"a batch's memory":             {"limited", nil, 2 * mib, 1, admission.BatchMemory, 2 * mib, mib},
		"a batch's items":              {"limited", nil, 1, 11, admission.BatchItems, 11, 10},
		"leaving the header out":       {"", []int64{mib, mib}, mib, 1, admission.TenantConcurrency, 2, 2},
		"calling oneself default":      {"default", []int64{mib, mib}, mib, 1, admission.TenantConcurrency, 2, 2},
		"calling oneself the overflow": {"_overflow", []int64{mib, mib}, mib, 1, admission.TenantConcurrency, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := shared(t, change)
			for _, bytes := range tt.held {
				l, err := admit(t, g, tt.tenant, bytes, 1)
				require.NoError(t, err)
				defer l.Release(nil)
			}
			_, err := admit(t, g, tt.tenant, tt.memory, tt.items)
			refusal := requireReason(t, tt.reason, err)
			require.Equal(t, []int64{tt.observed, tt.limit}, []int64{refusal.Observed, refusal.Limit})
			other, err := admit(t, g, "other", mib, 1)
			require.NoError(t, err, "a neighbour does not notice")
			other.Release(nil)
		})
	}
}

func TestWithoutIdentityTheDefaultTenantHasNoCeilingsOfItsOwn(t *testing.T) {
	g := start(t, func(c *Config) {
		size := int64(64 * mib)
		c.Memory.PoolSize = &size
		c.Tenants.Defaults.Rate.Requests = new(tenant.PerSecond(0.001))
	})
	for range 100 {
		l, err := g.Admit(t.Context(), traces(mib/2, 1))
		require.NoError(t, err)
		defer l.Release(nil)
	}
}

func TestAUserThatNamesTenantsTellsThemApart(t *testing.T) {
	g := start(t, func(c *Config) { c.Tenants.Defaults.MaxConcurrent = new(int64(1)) })
	_, _, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces", NamesTenants: true})
	require.NoError(t, err)
	named := func(names ...string) admission.Request {
		r := traces(0, 0)
		r.Share = admission.Share{Tenant: names[0], Memory: 3 * mib, Items: 3}
		for _, name := range names[1:] {
			r.Others = append(r.Others, admission.Share{Tenant: name, Memory: mib, Items: 1})
		}
		return r
	}
	l, err := g.Admit(t.Context(), named("a", "b"))
	require.NoError(t, err)
	bytes := func(name string) int64 {
		m := g.tenants.Get(name, false)
		defer m.Unpin()
		held, _ := g.pool.AccountStats(&m.Value.pool)
		return held
	}
	require.EqualValues(t, 3*mib, bytes("a"))
	require.EqualValues(t, mib, bytes("b"), "each is charged its share")
	_, err = g.Admit(t.Context(), named("a"))
	require.Equal(t, "a", requireReason(t, admission.TenantConcurrency, err).Tenant)
	second, err := g.Admit(t.Context(), named("b"))
	require.NoError(t, err, "the slot is the owner's")
	second.Release(nil)
	l.Release(nil)
	require.Zero(t, bytes("a")+bytes("b"))
	l, err = g.Admit(t.Context(), named("x", "x", ""))
	require.NoError(t, err)
	require.EqualValues(t, 4*mib, bytes("x"))
	_, err = g.Admit(t.Context(), traces(mib, 1))
	require.NoError(t, err, "the default tenant has bytes in it and no slot")
	l.Release(nil)
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) {
			c.Tenants.Defaults.Rate.Requests = new(tenant.PerSecond(1))
			c.Tenants.Defaults.Rate.Items = new(tenant.PerSecond(100))
		})
		send := func(items int64) error {
			l, err := admit(t, g, "a", mib, items)
			if err == nil {
				l.Release(nil)
			}
			return err
		}
		refusal := requireReason(t, admission.RateBurst, send(201))
		require.Equal(t, []int64{201, 200}, []int64{refusal.Observed, refusal.Limit})
		require.Equal(t, "{item}", refusal.Unit)
		require.Zero(t, refusal.RetryAfter)
		require.NoError(t, send(150))
		refusal = requireReason(t, admission.TenantRate, send(150))
		require.GreaterOrEqual(t, refusal.RetryAfter, time.Second)
		require.Less(t, refusal.RetryAfter, 3*time.Second)
		require.NoError(t, send(50), "what was refused took nothing")
		refusal = requireReason(t, admission.TenantRate, send(1))
		elapse(refusal.RetryAfter)
		require.NoError(t, send(1), "the delay is never below the true wait")
		elapse(time.Hour)
		require.NoError(t, send(1))
		require.NoError(t, send(1))
		requireReason(t, admission.TenantRate, send(1)) // idle time earns no more than the burst
	})
}

func TestARefusalByALaterGateRefundsTheRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) { c.Tenants.Defaults.Rate.Requests = new(tenant.PerSecond(0.5)) })
		requireReason(t, admission.MemoryLimit, second(admit(t, g, "a", 33*mib, 1)))
		held, err := admit(t, g, "a", 30*mib, 1)
		require.NoError(t, err)
		requireReason(t, admission.TenantRate, second(admit(t, g, "a", mib, 1)))
		held.Release(nil)
	})
}

func second[T any](_ T, err error) error { return err }

func TestTheBreakerOpensForBreachesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) {
			c.Tenants.Defaults.MaxConcurrent = new(int64(1))
			c.Tenants.Overrides = map[string]tenant.Override{"rated": {Rate: tenant.RateOverride{Requests: new(tenant.PerSecond(0.001))}}}
		})
		held, err := admit(t, g, "busy", mib, 1)
		require.NoError(t, err)
		require.NoError(t, second(admit(t, g, "rated", mib, 1)))
		for range 1000 {
			requireReason(t, admission.TenantConcurrency, second(admit(t, g, "busy", mib, 1)))
			requireReason(t, admission.TenantRate, second(admit(t, g, "rated", mib, 1)))
		}
		held.Release(nil)
		require.Zero(t, g.gauge(t, "governor.tenant.breakers.open"))

		for range 8 {
			requireReason(t, admission.MemoryLimit, second(admit(t, g, "bad", 33*mib, 1)))
		}
		refusal := requireReason(t, admission.TenantBreaker, second(admit(t, g, "bad", mib, 1)))
		require.Equal(t, []int64{8, 8}, []int64{refusal.Observed, refusal.Limit})
		require.GreaterOrEqual(t, refusal.RetryAfter, 5*time.Second)
		require.LessOrEqual(t, refusal.RetryAfter, 9*time.Second)
		require.EqualValues(t, 1, g.gauge(t, "governor.tenant.breakers.open"))
		good, err := admit(t, g, "good", mib, 1)
		require.NoError(t, err)
		good.Release(nil)

		elapse(refusal.RetryAfter)
		probe, err := admit(t, g, "bad", mib, 1)
		require.NoError(t, err)
		probe.Release(nil)
		require.Zero(t, g.gauge(t, "governor.tenant.breakers.open"))
	})
}

func TestAStuckExporterIsNobodysBreach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, nil)
		c, _, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces"})
		require.NoError(t, err)
		work := func(name string, takes time.Duration, timesOut bool) {
			r := traces(mib, 1)
			r.Ceilings = c
			l, err := g.Admit(from(t.Context(), "x-tenant", name), r)
			require.NoError(t, err)
			elapse(takes)
			if timesOut {
				l.Release(l.Refuse(t.Context(), admission.ProcessingTimeout, 1, 1))
				return
			}
			l.Release(nil)
		}
		for range 20 { // everybody times out
			work("a", time.Millisecond, true)
			work("b", time.Millisecond, true)
		}
		require.Zero(t, g.gauge(t, "governor.tenant.breakers.open"))
		for range 8 { // b comes through while a does not
			done := make(chan struct{})
			go func() {
				elapse(50 * time.Millisecond)
				work("b", time.Millisecond, false)
				close(done)
			}()
			work("a", 100*time.Millisecond, true)
			<-done
		}
		require.EqualValues(t, 1, g.gauge(t, "governor.tenant.breakers.open"))
	})
}

func TestAllow(t *testing.T) {
	g := shared(t, func(c *Config) { c.Tenants.Allow = []string{"acme"} })
	l, err := admit(t, g, "acme", mib, 1)
	require.NoError(t, err)
	l.Release(nil)
	for _, name := range []string{"evil", "", "default"} {
		require.ErrorIs(t, requireReason(t, admission.TenantUnknown, second(admit(t, g, name, mib, 1))), admission.ErrLimitExceeded)
	}
}

func TestOverridesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "overrides.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	withFile := func(c *Config) {
		c.Tenants.OverridesFile = path
		c.Tenants.Overrides = map[string]tenant.Override{"b": {MaxConcurrent: new(int64(2))}}
	}
	write("overrides: {a: {max_concurrent: 0, weigth: 2}}")
	g := create(t, withFile)
	require.ErrorContains(t, g.Start(t.Context(), componenttest.NewNopHost()), "'overrides::a::weigth' is not a key here")
	write("overrides: {a: {max_concurrent: 0}}")
	g = create(t, withFile)
	require.ErrorContains(t, g.Start(t.Context(), componenttest.NewNopHost()), "'overrides::a::max_concurrent' must be at least 1, got 0")

	write("overrides: {a: {max_concurrent: 1}}")
	g = shared(t, withFile)
	held, err := admit(t, g, "a", mib, 1)
	require.NoError(t, err)
	requireReason(t, admission.TenantConcurrency, second(admit(t, g, "a", mib, 1)))
	require.EqualValues(t, 1, g.overridesValid(t))

	write("overrides: {a: {max_concurrent: 3}}")
	g.reloadOverrides()
	held2, err := admit(t, g, "a", mib, 1)
	require.NoError(t, err, "it takes effect for a tenant that holds something")
	held3, err := admit(t, g, "a", mib, 1)
	require.NoError(t, err)
	requireReason(t, admission.TenantConcurrency, second(admit(t, g, "a", mib, 1)))

	write("overrides: {a: {max_concurrent: many}}")
	g.reloadOverrides()
	g.reloadOverrides()
	require.Zero(t, g.overridesValid(t))
	require.Len(t, g.messages(zapcore.ErrorLevel), 1, "said once")
	requireReason(t, admission.TenantConcurrency, second(admit(t, g, "a", mib, 1)))
	for _, l := range []admission.Lease{held, held2, held3} {
		l.Release(nil)
	}
	require.Zero(t, g.gauge(t, "governor.memory.usage"))
}

func (g *tested) overridesValid(t *testing.T) int64 {
	m, err := g.telemetry.GetMetric("otelcol_governor.overrides.valid")
	require.NoError(t, err)
	return m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
}

func TestTelemetryOfTenantsIsBounded(t *testing.T) {
	for mode, want := range map[string]map[string]int64{
		TenantsNone:       nil,
		TenantsConfigured: {"known": mib, "_other": 3*mib + 2*mib},
		TenantsTop:        {"big": 3 * mib, "mid": 2 * mib, "_other": mib},
	} {
		t.Run(mode, func(t *testing.T) {
			g := shared(t, func(c *Config) {
				c.Telemetry = TelemetryConfig{Tenants: mode, Top: 2}
				c.Tenants.Overrides = map[string]tenant.Override{"known": {}}
			})
			for name, bytes := range map[string]int64{"known": mib, "big": 3 * mib, "mid": 2 * mib} {
				l, err := admit(t, g, name, bytes, 1)
				require.NoError(t, err)
				defer l.Release(nil)
			}
			if want == nil {
				_, err := g.telemetry.GetMetric("otelcol_governor.tenant.memory.usage")
				require.Error(t, err)
				return
			}
			var points []metricdata.DataPoint[int64]
			for name, bytes := range want {
				points = append(points, metricdata.DataPoint[int64]{Value: bytes, Attributes: attributes("governor.tenant", name)})
			}
			metadatatest.AssertEqualGovernorTenantMemoryUsage(t, g.telemetry, points, metricdatatest.IgnoreTimestamp())
		})
	}
}

func TestObserveCountsWhatTenantsGatesWouldRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) {
			c.Mode = ModeObserve
			c.Tenants.Allow = []string{"a", "b"}
			c.Tenants.Overrides = map[string]tenant.Override{
				"a": {MaxConcurrent: new(int64(1)), Rate: tenant.RateOverride{Requests: new(tenant.PerSecond(1))}},
			}
		})
		var leases []admission.Lease
		for _, name := range []string{"a", "a", "a", "evil"} {
			l, err := admit(t, g, name, mib, 1)
			require.NoError(t, err)
			leases = append(leases, l)
		}
		for range 9 { // eight breaches, and the breaker
			l, err := admit(t, g, "b", 33*mib, 1)
			require.NoError(t, err)
			l.Release(errors.New("x"))
		}
		for _, l := range leases {
			l.Release(nil)
		}
		require.Zero(t, g.gauge(t, "governor.memory.usage"))
		var want []metricdata.DataPoint[int64]
		for reason, n := range map[string]int64{
			"tenant_concurrency": 1, "tenant_rate": 1, "tenant_unknown": 1, "memory_limit": 8, "tenant_breaker": 1,
		} {
			want = append(want, metricdata.DataPoint[int64]{Value: n, Attributes: attributes("error.type", reason)})
		}
		metadatatest.AssertEqualGovernorObservedRefusals(t, g.telemetry, want, metricdatatest.IgnoreTimestamp())
	})
}

func TestRefusalsAreSummarizedByTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, nil)
		for name, n := range map[string]int{"a\nb": 3, "c": 5} {
			for range n {
				requireReason(t, admission.BatchMemory, second(admit(t, g, name, 200*mib, 1)))
			}
		}
		elapse(summaryInterval)
		synctest.Wait()
		got := map[string]any{}
		for _, e := range g.logs.FilterMessage("Batches were refused").All() {
			got[e.ContextMap()["tenant"].(string)] = e.ContextMap()["batches"]
		}
		require.Equal(t, map[string]any{
			`a\nb`: map[admission.Reason]int64{"batch_memory": 3}, "c": map[admission.Reason]int64{"batch_memory": 5},
		}, got)
	})
}

func TestAComputedDelayIsNeverShorterThanTheWaitInWholeSeconds(t *testing.T) {
	for range 1000 {
		for _, wait := range []time.Duration{1, time.Second, 4965 * time.Millisecond, 25 * time.Second} {
			d := computed(wait)
			require.GreaterOrEqual(t, d.Truncate(time.Second), wait)
			require.LessOrEqual(t, d, 30*time.Second)
		}
	}
	require.Equal(t, 30*time.Second, computed(time.Hour))
}

func TestTheSummaryNamesAFewTenantsAndTheRestAsOne(t *testing.T) {
	g := shared(t, func(c *Config) { c.Tenants.Defaults.Breaker.Breaches = new(int64(strict.Unlimited)) })
	for i := range 20 {
		for range i + 1 {
			require.Error(t, second(admit(t, g, fmt.Sprint("tenant ", i), 200*mib, 1)))
		}
	}
	g.summarize()
	lines := g.logs.FilterMessage("Batches were refused").All()
	require.Len(t, lines, summaryTenants+1)
	require.Equal(t, "tenant 19", lines[0].ContextMap()["tenant"])
	require.Equal(t, "_other", lines[summaryTenants].ContextMap()["tenant"])
	require.Equal(t, map[admission.Reason]int64{"batch_memory": 12 * 13 / 2}, lines[summaryTenants].ContextMap()["batches"])
}

func TestNamesThatAreNotAllowedTakeNoPlaces(t *testing.T) {
	g := shared(t, func(c *Config) {
		c.Tenants.Allow = []string{"a", "b"}
		c.Tenants.MaxTracked = 3
	})
	for i := range 30 {
		requireReason(t, admission.TenantUnknown, second(admit(t, g, fmt.Sprint("invented ", i), mib, 1)))
	}
	require.Zero(t, g.gauge(t, "governor.tenant.count"))
	l, err := admit(t, g, "a", mib, 1)
	require.NoError(t, err)
	l.Release(nil)
}

func TestTheBreakerOpensAgainForLimitsThatHoldForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) { c.Admission.MaxBatchItems = 10 })
		for range 3 {
			for range 8 {
				requireReason(t, admission.BatchItems, second(admit(t, g, "a", mib, 11)))
			}
			refusal := requireReason(t, admission.TenantBreaker, second(admit(t, g, "a", mib, 11)))
			elapse(refusal.RetryAfter)
			probe, err := admit(t, g, "a", mib, 1)
			require.NoError(t, err)
			probe.Release(nil)
		}
	})
}

func TestATenantWhoseBreakerIsOpenIsForgottenWhenItNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shared(t, func(c *Config) { c.Tenants.IdleTimeout = time.Second })
		for range 8 {
			require.Error(t, second(admit(t, g, "gone", 200*mib, 1)))
		}
		elapse(10 * time.Second)
		requireReason(t, admission.BatchMemory, second(admit(t, g, "gone", 200*mib, 1))) // the probe
		elapse(14 * time.Second)
		require.EqualValues(t, 1, g.gauge(t, "governor.tenant.breakers.open"), "leaving and coming back refunds nothing")
		elapse(20 * time.Second)
		require.Zero(t, g.gauge(t, "governor.tenant.count"))
		require.Zero(t, g.gauge(t, "governor.tenant.breakers.open"))
	})
}

func TestARefusedSettleLeavesTheGatesInPlace(t *testing.T) {
	g := shared(t, func(c *Config) { c.Admission.MaxBatchItems = 10 })
	estimate := traces(mib, 1)
	estimate.Provisional = true
	root, err := g.Admit(from(t.Context(), "x-tenant", "a"), estimate)
	require.NoError(t, err)
	for range 3 {
		_, err = root.Settle(from(t.Context(), "x-tenant", "b"), traces(mib, 11))
		require.Equal(t, "b", requireReason(t, admission.BatchItems, err).Tenant)
	}
	part, err := root.Settle(from(t.Context(), "x-tenant", "b"), traces(2*mib, 1))
	require.NoError(t, err)
	b := g.tenants.Get("b", false)
	held, slots := g.pool.AccountStats(&b.Value.pool)
	require.Equal(t, []int64{2 * mib, 1}, []int64{held, slots}, "the batch is the true tenant's now")
	b.Unpin()
	part.Release(nil)
	root.Release(nil)
	require.Zero(t, g.gauge(t, "governor.memory.usage"))
}

func TestWhatHasNoEffectWithoutIdentityIsSaid(t *testing.T) {
	const warning = "Nothing tells tenants apart"
	for name, tt := range map[string]struct {
		change func(*Config)
		want   int
	}{
		"an allow list":  {func(c *Config) { c.Tenants.Allow = []string{"a"} }, 1},
		"a default":      {func(c *Config) { c.Tenants.Defaults.MaxConcurrent = new(int64(1)) }, 1},
		"an override":    {func(c *Config) { c.Tenants.Overrides = map[string]tenant.Override{"a": {}} }, 1},
		"nothing":        {func(*Config) {}, 0},
		"with a header":  {func(c *Config) { c.Tenants.Allow = []string{"a"}; c.Tenants.MetadataKeys = []string{"x"} }, 0},
		"in observation": {func(c *Config) { c.Mode = ModeObserve; c.Tenants.Allow = []string{"a"} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, tt.change)
			n := 0
			for _, m := range g.messages(zapcore.WarnLevel) {
				if strings.HasPrefix(m, warning) {
					n++
				}
			}
			require.Equal(t, tt.want, n)
		})
	}
}

func TestABatchIsObservedToBeRefusedOnce(t *testing.T) {
	g := shared(t, func(c *Config) { c.Mode = ModeObserve })
	r := traces(200*mib, 1)
	r.Provisional = true
	door, err := g.Admit(from(t.Context(), "x-tenant", "a"), r)
	require.NoError(t, err)
	limiter, err := door.Settle(from(t.Context(), "x-tenant", "a"), traces(200*mib, 1))
	require.NoError(t, err)
	limiter.Release(nil)
	door.Release(nil)
	require.EqualValues(t, 1, g.gauge(t, "governor.observed_refusals"))
}

func TestObservationIsSummarizedToo(t *testing.T) {
	g := shared(t, func(c *Config) { c.Mode = ModeObserve })
	l, err := admit(t, g, "a", 200*mib, 1)
	require.NoError(t, err)
	l.Release(nil)
	g.summarize()
	lines := g.logs.FilterMessage("Batches would have been refused").All()
	require.Len(t, lines, 1)
	require.Equal(t, "a", lines[0].ContextMap()["tenant"])
}
