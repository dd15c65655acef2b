// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Each tells of one resource of a batch: its heap bytes, and its spans, data points, log records or
// samples. What a batch holds beside its resources is told of none of them.
type Each func(r pcommon.Resource, memory, items int64)

// TracesByResource calls each for every resource of td.
func TracesByResource(td ptrace.Traces, each Each) {
	byResource(td.ResourceSpans(), ptrace.ResourceSpans.ScopeSpans, spans, each, func(ss ptrace.ScopeSpans) int {
		return ss.Spans().Len()
	})
}

// MetricsByResource calls each for every resource of md.
func MetricsByResource(md pmetric.Metrics, each Each) {
	byResource(md.ResourceMetrics(), pmetric.ResourceMetrics.ScopeMetrics, metrics, each, func(sm pmetric.ScopeMetrics) int {
		points := 0
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				points += m.Gauge().DataPoints().Len()
			case pmetric.MetricTypeSum:
				points += m.Sum().DataPoints().Len()
			case pmetric.MetricTypeHistogram:
				points += m.Histogram().DataPoints().Len()
			case pmetric.MetricTypeExponentialHistogram:
				points += m.ExponentialHistogram().DataPoints().Len()
			case pmetric.MetricTypeSummary:
				points += m.Summary().DataPoints().Len()
			}
		}
		return points
	})
}

// LogsByResource calls each for every resource of ld.
func LogsByResource(ld plog.Logs, each Each) {
	byResource(ld.ResourceLogs(), plog.ResourceLogs.ScopeLogs, logRecords, each, func(sl plog.ScopeLogs) int {
		return sl.LogRecords().Len()
	})
}

// ProfilesByResource calls each for every resource of pd. The dictionary is nobody's.
func ProfilesByResource(pd pprofile.Profiles, each Each) {
	byResource(pd.ResourceProfiles(), pprofile.ResourceProfiles.ScopeProfiles, profiles, each, func(sp pprofile.ScopeProfiles) int {
		samples := 0
		for _, p := range sp.Profiles().All() {
			samples += p.Samples().Len()
		}
		return samples
	})
}

func byResource[RL list[R], SL list[S], R ofResource, S ofScope](
	resources RL, scopes func(R) SL, records func(S) int64, each Each, count func(S) int,
) {
	for i := range resources.Len() {
		r := resources.At(i)
		memory, items := resource(r.Resource())+text(r.SchemaUrl()), 0
		all := scopes(r)
		memory += pointed(all.Len(), sizeScope)
		for j := range all.Len() {
			s := all.At(j)
			memory += scope(s.Scope()) + text(s.SchemaUrl()) + records(s)
			items += count(s)
		}
		each(r.Resource(), memory, int64(items))
	}
}
