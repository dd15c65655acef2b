// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/log/logtest"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// sdkPatience is after how long an exporter gives up, which is more than anybody is told to wait for here; by itself
// it would be 10 s.
const sdkPatience = time.Minute

// sdkRetry has an exporter retry as soon as it is allowed, so that any longer wait is what it was told.
var sdkRetry = struct {
	Enabled                                      bool
	InitialInterval, MaxInterval, MaxElapsedTime time.Duration
}{true, 10 * time.Millisecond, 10 * time.Millisecond, sdkPatience}

// sdkExporter is one of the Go SDK's: it sends a batch until that is accepted or given up.
type sdkExporter interface {
	export(context.Context, batch) error
	Shutdown(context.Context) error
}

// sdkExporters makes them, for an address and with headers.
var sdkExporters = []struct {
	name string
	http bool
	make func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error)
}{
	{"SDK traces grpc", false, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(to), otlptracegrpc.WithInsecure(), otlptracegrpc.WithHeaders(headers),
			otlptracegrpc.WithTimeout(sdkPatience), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig(sdkRetry)))
		return sdkSpans{e}, err
	}},
	{"SDK traces http", true, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(to), otlptracehttp.WithInsecure(), otlptracehttp.WithHeaders(headers),
			otlptracehttp.WithTimeout(sdkPatience), otlptracehttp.WithRetry(otlptracehttp.RetryConfig(sdkRetry)))
		return sdkSpans{e}, err
	}},
	{"SDK metrics grpc", false, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(to), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithHeaders(headers),
			otlpmetricgrpc.WithTimeout(sdkPatience), otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig(sdkRetry)))
		return sdkMetrics{e}, err
	}},
	{"SDK metrics http", true, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(to), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithHeaders(headers),
			otlpmetrichttp.WithTimeout(sdkPatience), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig(sdkRetry)))
		return sdkMetrics{e}, err
	}},
	{"SDK logs grpc", false, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(to), otlploggrpc.WithInsecure(), otlploggrpc.WithHeaders(headers),
			otlploggrpc.WithTimeout(sdkPatience), otlploggrpc.WithRetry(otlploggrpc.RetryConfig(sdkRetry)))
		return sdkLogs{e}, err
	}},
	{"SDK logs http", true, func(ctx context.Context, to string, headers map[string]string) (sdkExporter, error) {
		e, err := otlploghttp.New(ctx, otlploghttp.WithEndpoint(to), otlploghttp.WithInsecure(), otlploghttp.WithHeaders(headers),
			otlploghttp.WithTimeout(sdkPatience), otlploghttp.WithRetry(otlploghttp.RetryConfig(sdkRetry)))
		return sdkLogs{e}, err
	}},
}

type sdkSpans struct{ sdktrace.SpanExporter }

func (e sdkSpans) export(ctx context.Context, b batch) error {
	var spans tracetest.SpanStubs
	for _, id := range b.all(217) {
		spans = append(spans, tracetest.SpanStub{Name: id})
	}
	return e.ExportSpans(ctx, spans.Snapshots())
}

type sdkMetrics struct{ sdkmetric.Exporter }

func (e sdkMetrics) export(ctx context.Context, b batch) error {
	var ms []metricdata.Metrics
	for _, id := range b.all(249) {
		ms = append(ms, metricdata.Metrics{Name: id, Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Value: 1}}}})
	}
	return e.Export(ctx, &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: ms}}})
}

type sdkLogs struct{ sdklog.Exporter }

func (e sdkLogs) export(ctx context.Context, b batch) error {
	var records []sdklog.Record
	for _, id := range b.all(153) {
		records = append(records, logtest.RecordFactory{Body: attribute.StringValue(id)}.NewRecord())
	}
	return e.Export(ctx, records)
}
