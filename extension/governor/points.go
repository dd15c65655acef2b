// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadata"
)

// telemetry turns what was decided into the metrics of metadata.yaml.
type telemetry struct {
	*metadata.TelemetryBuilder
	signals map[string]*points
}

// phase is where a batch was decided.
type phase uint8

const (
	inHeader phase = iota // before any of it was read
	onWire                // before it was decoded
	inBatch               // decoded
)

var phases = [...]string{inHeader: "header", onWire: "wire", inBatch: "batch"}

// points are the histograms' points of one signal, with their attributes made once.
type points struct {
	*telemetry
	signal   string
	worked   []metric.RecordOption
	admitted [len(phases)][]metric.RecordOption
	refused  sync.Map // refusal → []metric.RecordOption: a closed set
}

// refusal is what tells the refusals of one signal apart.
type refusal struct {
	phase  phase
	reason admission.Reason
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	t := &telemetry{TelemetryBuilder: builder, signals: map[string]*points{}}
	for _, signal := range [...]string{"", "traces", "metrics", "logs", "profiles"} {
		p := &points{telemetry: t, signal: signal, worked: recorded(attribute.String("otelcol.signal", signal))}
		for i := range p.admitted {
			p.admitted[i] = p.decision(refusal{phase: phase(i)})
		}
		t.signals[signal] = p
	}
	return t, err
}

// of returns the points of a signal. One that there is not has those of none.
func (t *telemetry) of(signal string) *points {
	if p := t.signals[signal]; p != nil {
		return p
	}
	return t.signals[""]
}

// recorded returns the option that sets these attributes, but for those that are empty.
func recorded(attrs ...attribute.KeyValue) []metric.RecordOption {
	var set []attribute.KeyValue
	for _, a := range attrs {
		if a.Value.AsString() != "" {
			set = append(set, a)
		}
	}
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(set...))}
}

func (p *points) decision(r refusal) []metric.RecordOption {
	return recorded(
		attribute.String("otelcol.signal", p.signal),
		attribute.String("governor.phase", phases[r.phase]),
		attribute.String("error.type", string(r.reason)),
	)
}

// decided records the one point that every batch is. One that was not refused has no reason.
func (p *points) decided(ctx context.Context, r refusal, took time.Duration) {
	opts := p.admitted[r.phase]
	if r.reason != "" {
		known, ok := p.refused.Load(r)
		if !ok {
			known, _ = p.refused.LoadOrStore(r, p.decision(r))
		}
		opts = known.([]metric.RecordOption)
	}
	p.GovernorBatchDuration.Record(ctx, took.Seconds(), opts...)
}

// ended records a batch that was admitted.
func (p *points) ended(ctx context.Context, memory int64, waited, worked time.Duration) {
	p.GovernorBatchMemory.Record(ctx, memory, p.worked...)
	p.GovernorBatchWaitDuration.Record(ctx, waited.Seconds(), p.worked...)
	p.GovernorBatchProcessingDuration.Record(ctx, worked.Seconds(), p.worked...)
}
