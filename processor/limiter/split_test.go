// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// batches are of each signal, with one resource for each tenant and as many items as it is told.
var batches = map[string]func(items map[string]int) (admission.Share, func(footprint.Each)){
	"traces": func(items map[string]int) (admission.Share, func(footprint.Each)) {
		td := ptrace.NewTraces()
		for name, n := range items {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("team", name)
			spans := rs.ScopeSpans().AppendEmpty().Spans()
			for range n {
				spans.AppendEmpty().SetName("a name")
			}
		}
		return admission.Share{Memory: footprint.Traces(td), Items: int64(td.SpanCount()), WireSize: int64(new(ptrace.ProtoMarshaler).TracesSize(td))},
			func(each footprint.Each) { footprint.TracesByResource(td, each) }
	},
	"metrics": func(items map[string]int) (admission.Share, func(footprint.Each)) {
		md := pmetric.NewMetrics()
		for name, n := range items {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("team", name)
			metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
			for i := range n { // a point of each kind in turn
				switch m := metrics.AppendEmpty(); i % 5 {
				case 0:
					m.SetEmptyGauge().DataPoints().AppendEmpty()
				case 1:
					m.SetEmptySum().DataPoints().AppendEmpty()
				case 2:
					m.SetEmptyHistogram().DataPoints().AppendEmpty()
				case 3:
					m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
				case 4:
					m.SetEmptySummary().DataPoints().AppendEmpty()
				}
			}
		}
		return admission.Share{Memory: footprint.Metrics(md), Items: int64(md.DataPointCount()), WireSize: int64(new(pmetric.ProtoMarshaler).MetricsSize(md))},
			func(each footprint.Each) { footprint.MetricsByResource(md, each) }
	},
	"logs": func(items map[string]int) (admission.Share, func(footprint.Each)) {
		ld := plog.NewLogs()
		for name, n := range items {
			rl := ld.ResourceLogs().AppendEmpty()
			rl.Resource().Attributes().PutStr("team", name)
			records := rl.ScopeLogs().AppendEmpty().LogRecords()
			for range n {
				records.AppendEmpty().Body().SetStr("a body")
			}
		}
		return admission.Share{Memory: footprint.Logs(ld), Items: int64(ld.LogRecordCount()), WireSize: int64(new(plog.ProtoMarshaler).LogsSize(ld))},
			func(each footprint.Each) { footprint.LogsByResource(ld, each) }
	},
	"profiles": func(items map[string]int) (admission.Share, func(footprint.Each)) {
		pd := pprofile.NewProfiles()
		for name, n := range items {
			rp := pd.ResourceProfiles().AppendEmpty()
			rp.Resource().Attributes().PutStr("team", name)
			samples := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
			for range n {
				samples.AppendEmpty()
			}
		}
		return admission.Share{Memory: footprint.Profiles(pd), Items: int64(pd.SampleCount()), WireSize: int64(new(pprofile.ProtoMarshaler).ProfilesSize(pd))},
			func(each footprint.Each) { footprint.ProfilesByResource(pd, each) }
	},
}

func TestABatchIsDividedAmongTheTenantsOfItsResources(t *testing.T) {
	many := map[string]int{}
	for i := range 200 {
		many[fmt.Sprint("tenant ", i)] = 5
	}
	for signal, batch := range batches {
		for name, items := range map[string]map[string]int{
			"one":               {"a": 100},
			"several":           {"a": 10, "b": 500, "": 3},
			"nobody":            {},
			"too many to count": many,
		} {
			t.Run(signal+" "+name, func(t *testing.T) {
				all, resources := batch(items)
				first, others := split(all, "team", resources)
				sum, seen := first, map[string]bool{first.Tenant: true}
				for _, s := range others {
					sum.Memory += s.Memory
					sum.Items += s.Items
					sum.WireSize += s.WireSize
					require.LessOrEqual(t, s.Memory, first.Memory, "the largest comes first")
					require.False(t, seen[s.Tenant], "each is named once")
					seen[s.Tenant] = true
					if n, one := items[s.Tenant]; one && len(items) < maxTenants {
						require.EqualValues(t, n, s.Items)
					}
				}
				sum.Tenant = ""
				require.Equal(t, all, sum, "nothing is lost")
				require.LessOrEqual(t, len(seen), maxTenants+1)
			})
		}
	}
}

func TestTenantAttribute(t *testing.T) {
	h := startGovernor(t, map[string]any{
		"memory": map[string]any{"pool_size": "32MiB"},
		"tenants": map[string]any{
			"metadata_keys": []any{"x-tenant"},
			"overrides":     map[string]any{"small": map[string]any{"max_batch_items": 3}},
		},
	})
	l := create(t, "logs", &Config{TenantAttribute: "team"}, func(context.Context, int) error { return nil })
	require.NoError(t, l.Start(t.Context(), h))
	td := func(team string, n int) plog.Logs {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("team", team)
		for range n {
			rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		}
		return ld
	}
	consumer := l.Component.(interface {
		ConsumeLogs(context.Context, plog.Logs) error
	})
	require.NoError(t, consumer.ConsumeLogs(t.Context(), td("large", 4)))
	err := consumer.ConsumeLogs(t.Context(), td("small", 4))
	require.ErrorContains(t, err, "batch_items: the batch has 4 items and max_batch_items is 3")

	header := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"x-tenant": {"large"}})})
	require.NoError(t, consumer.ConsumeLogs(header, td("small", 4)), "what the request says goes first")
}

func TestANestedAttributeNamesNobody(t *testing.T) {
	ld := plog.NewLogs()
	v := ld.ResourceLogs().AppendEmpty().Resource().Attributes().PutEmptySlice("team")
	for range 1000 {
		v = v.AppendEmpty().SetEmptySlice()
	}
	first, others := split(admission.Share{Memory: footprint.Logs(ld)}, "team", func(each footprint.Each) { footprint.LogsByResource(ld, each) })
	require.Empty(t, first.Tenant)
	require.Empty(t, others)
}
