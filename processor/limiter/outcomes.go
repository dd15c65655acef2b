// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// outcomes are the attributes of limiter.items, built once. The words are those of the Collector's own
// pipeline telemetry: failure is this component's, refused is that of one after it.
type outcomes struct {
	set                       attribute.Set // without an outcome
	success, failure, refused []metric.AddOption
}

func newOutcomes(id, signal string) outcomes {
	attrs := []attribute.KeyValue{
		attribute.String("otelcol.component.id", id),
		attribute.String("otelcol.signal", signal),
	}
	with := func(outcome string) []metric.AddOption {
		all := append(attrs[:len(attrs):len(attrs)], attribute.String("otelcol.component.outcome", outcome))
		return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(all...))}
	}
	return outcomes{
		set:     attribute.NewSet(attrs...),
		success: with("success"),
		failure: with("failure"),
		refused: with("refused"),
	}
}

// of returns the attributes for a batch that ended with err; own tells that the error is this limiter's.
func (o *outcomes) of(err error, own bool) []metric.AddOption {
	switch {
	case err == nil:
		return o.success
	case own:
		return o.failure
	default:
		return o.refused
	}
}
