// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otel-governor/otel-governor/admission"
)

// register returns a governor and a request of an ordinary batch, from a user that registered like a
// limiter does.
func register(b *testing.B, telemetry settings, conf map[string]any) (admission.Governor, admission.Request) {
	g := governorOf(startGovernor(b, telemetry, conf))
	ceilings, _, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces"})
	require.NoError(b, err)
	return g, admission.Request{
		Share:  admission.Share{Memory: 512 << 10, Items: 512},
		Signal: "traces", Ceilings: ceilings,
	}
}

func admitRelease(telemetry settings) func(*testing.B) {
	return func(b *testing.B) {
		g, r := register(b, telemetry, map[string]any{})
		admitAndRelease(b, b.Context(), g, r)
	}
}

// byHeader tells tenants apart by a header and gives each these ceilings.
func byHeader(ceilings map[string]any) map[string]any {
	return map[string]any{"tenants": map[string]any{"metadata_keys": []any{header}, "defaults": ceilings}}
}

// rated gives each tenant one rate.
func rated(requestsPerSecond float64) map[string]any {
	return byHeader(map[string]any{"rate": map[string]any{"requests_per_second": requestsPerSecond}})
}

const header = "x-scope-orgid"

// ofTenant is a request's context as a receiver makes it, with a header that names its tenant.
func ofTenant(ctx context.Context) context.Context {
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{header: {"acme"}})})
}

// admitReleaseTenant is for a tenant that is known from the second time on.
func admitReleaseTenant(b *testing.B) {
	g, r := register(b, metricsOff, rated(often))
	admitAndRelease(b, ofTenant(b.Context()), g, r)
}

// admitReleaseNamed is for a tenant whose name is known already, so that neither identifying it nor telemetry
// counts.
func admitReleaseNamed(b *testing.B) {
	g, r := register(b, metricsOff, rated(often))
	r.Tenant = "acme"
	admitAndRelease(b, b.Context(), g, r)
}

func admitAndRelease(b *testing.B, ctx context.Context, g admission.Governor, r admission.Request) {
	for b.Loop() {
		l, err := g.Admit(ctx, r)
		if err != nil {
			panic(err)
		}
		l.Release(nil)
	}
}

func admitReleaseParallel(telemetry settings) func(*testing.B) {
	return func(b *testing.B) {
		g, r := register(b, telemetry, map[string]any{})
		ctx := b.Context()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l, err := g.Admit(ctx, r)
				if err != nil {
					panic(err)
				}
				l.Release(nil)
			}
		})
	}
}

// refuseTooLarge asks for more than any batch may have.
func refuseTooLarge(telemetry settings) func(*testing.B) {
	return func(b *testing.B) {
		g, r := register(b, telemetry, map[string]any{"admission": map[string]any{"max_batch_items": 1000}})
		r.Items = 1001
		refuse(b, b.Context(), g, r, admission.BatchItems)
	}
}

// refuseFull asks while somebody else holds the only place.
func refuseFull(telemetry settings) func(*testing.B) {
	return func(b *testing.B) {
		g, r := register(b, telemetry, map[string]any{"admission": map[string]any{"max_concurrent": 1, "max_queued": 0}})
		l, err := g.Admit(b.Context(), r)
		require.NoError(b, err)
		defer l.Release(nil)
		refuse(b, b.Context(), g, r, admission.QueueTimeout)
	}
}

// refuseRate asks for a tenant whose only token is taken.
func refuseRate(b *testing.B) {
	g, r := register(b, metricsOff, rated(0.001))
	refuseSecond(b, g, r, admission.TenantRate)
}

// refuseConcurrency asks for a tenant that has all the places that it may have.
func refuseConcurrency(b *testing.B) {
	g, r := register(b, metricsOff, byHeader(map[string]any{"max_concurrent": 1}))
	refuseSecond(b, g, r, admission.TenantConcurrency)
}

func refuseSecond(b *testing.B, g admission.Governor, r admission.Request, want admission.Reason) {
	ctx := ofTenant(b.Context())
	l, err := g.Admit(ctx, r)
	require.NoError(b, err)
	defer l.Release(nil)
	refuse(b, ctx, g, r, want)
}

func refuse(b *testing.B, ctx context.Context, g admission.Governor, r admission.Request, want admission.Reason) {
	var err error
	for b.Loop() {
		_, err = g.Admit(ctx, r)
	}
	if refusal := (*admission.Error)(nil); !errors.As(err, &refusal) || refusal.Reason != want {
		panic(fmt.Sprintf("wanted %s, got %v", want, err))
	}
}

// consume passes one batch on, again and again.
func consume(with processing) func(*testing.B) {
	return func(b *testing.B) {
		c := with(b, consumertest.NewNop())
		ctx, td := b.Context(), spans.decoded(b)
		for b.Loop() {
			if err := c.ConsumeTraces(ctx, td); err != nil {
				panic(err)
			}
		}
	}
}

// receive decodes a batch and passes it on, as a receiver does.
func receive(with processing) func(*testing.B) {
	return func(b *testing.B) {
		c := with(b, consumertest.NewNop())
		ctx, wire := b.Context(), spans.wire(b)
		for b.Loop() {
			td, err := spans.unmarshal(wire)
			if err == nil {
				err = c.ConsumeTraces(ctx, td)
			}
			if err != nil {
				panic(err)
			}
		}
	}
}
