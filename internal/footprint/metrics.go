// SPDX-License-Identifier: Apache-2.0

package footprint

import "go.opentelemetry.io/collector/pdata/pmetric"

// Metrics returns the heap bytes that md keeps alive.
func Metrics(md pmetric.Metrics) int64 {
	return object(sizeRequest) + flat(sizeState) +
		tree(md.ResourceMetrics(), sizeResource, pmetric.ResourceMetrics.ScopeMetrics, metrics)
}

func metrics(sm pmetric.ScopeMetrics) int64 {
	return each(sm.Metrics(), sizeMetric, func(m pmetric.Metric) int64 {
		return text(m.Name()) + text(m.Description()) + text(m.Unit()) + attributes(m.Metadata()) + data(m)
	})
}

// data is the object that says the metric's type, the metric of that type and
// its points.
func data(m pmetric.Metric) int64 {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return object(sizeData) + object(sizePoints) + numberPoints(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		return object(sizeData) + object(sizeTemporalPoints) + numberPoints(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		return object(sizeData) + object(sizeTemporalPoints) + each(m.Histogram().DataPoints(), sizeHistogramPoint, histogramPoint)
	case pmetric.MetricTypeExponentialHistogram:
		return object(sizeData) + object(sizeTemporalPoints) + each(m.ExponentialHistogram().DataPoints(), sizeExponentialPoint, exponentialPoint)
	case pmetric.MetricTypeSummary:
		return object(sizeData) + object(sizePoints) + each(m.Summary().DataPoints(), sizeSummaryPoint, summaryPoint)
	}
	return 0
}

func numberPoints(ps pmetric.NumberDataPointSlice) int64 {
	n := ps.Len()
	heap := pointed(n, sizeNumberPoint)
	for i := range n {
		p := ps.At(i)
		heap += attributes(p.Attributes())
		if es := p.Exemplars(); es.Len() > 0 {
			heap += examples(es)
		}
		if p.ValueType() != pmetric.NumberDataPointValueTypeEmpty {
			heap += flat(sizeNumberValue)
		}
	}
	return heap
}

func histogramPoint(p pmetric.HistogramDataPoint) int64 {
	return attributes(p.Attributes()) + examples(p.Exemplars()) +
		flat(8*p.BucketCounts().Len()) + flat(8*p.ExplicitBounds().Len())
}

func exponentialPoint(p pmetric.ExponentialHistogramDataPoint) int64 {
	return attributes(p.Attributes()) + examples(p.Exemplars()) +
		int64s.grown(p.Positive().BucketCounts().Len()) + int64s.grown(p.Negative().BucketCounts().Len())
}

func summaryPoint(p pmetric.SummaryDataPoint) int64 {
	return attributes(p.Attributes()) + pointed(p.QuantileValues().Len(), sizeQuantile)
}

func examples(es pmetric.ExemplarSlice) int64 {
	n := es.Len()
	heap := exemplars.grown(n)
	for i := range n {
		e := es.At(i)
		heap += attributes(e.FilteredAttributes())
		if e.ValueType() != pmetric.ExemplarValueTypeEmpty {
			heap += flat(sizeNumberValue)
		}
	}
	return heap
}
