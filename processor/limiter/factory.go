// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/pipeline/xpipeline"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otel-governor/otel-governor/internal/footprint"
	"github.com/otel-governor/otel-governor/internal/lifetime"
	"github.com/otel-governor/otel-governor/processor/limiter/internal/metadata"
)

// NewFactory returns the factory of the limiter processor.
func NewFactory() processor.Factory {
	return xprocessor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xprocessor.WithTraces(createTraces, metadata.TracesStability),
		xprocessor.WithMetrics(createMetrics, metadata.MetricsStability),
		xprocessor.WithLogs(createLogs, metadata.LogsStability),
		xprocessor.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

// What differs between the signals is how a batch is weighed and counted, and what comes next.

func createTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	l, err := newLimiter(set, cfg.(*Config), pipeline.SignalTraces)
	if err != nil {
		return nil, err
	}
	c, err := consumer.NewTraces(governed(l, kind[ptrace.Traces]{
		footprint.Traces, ptrace.Traces.SpanCount, footprint.TracesByResource, new(ptrace.ProtoMarshaler).TracesSize, lifetime.Traces,
	}, next.ConsumeTraces))
	return struct {
		*limiter
		consumer.Traces
	}{l, c}, err
}

func createMetrics(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	l, err := newLimiter(set, cfg.(*Config), pipeline.SignalMetrics)
	if err != nil {
		return nil, err
	}
	c, err := consumer.NewMetrics(governed(l, kind[pmetric.Metrics]{
		footprint.Metrics, pmetric.Metrics.DataPointCount, footprint.MetricsByResource, new(pmetric.ProtoMarshaler).MetricsSize, lifetime.Metrics,
	}, next.ConsumeMetrics))
	return struct {
		*limiter
		consumer.Metrics
	}{l, c}, err
}

func createLogs(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	l, err := newLimiter(set, cfg.(*Config), pipeline.SignalLogs)
	if err != nil {
		return nil, err
	}
	c, err := consumer.NewLogs(governed(l, kind[plog.Logs]{
		footprint.Logs, plog.Logs.LogRecordCount, footprint.LogsByResource, new(plog.ProtoMarshaler).LogsSize, lifetime.Logs,
	}, next.ConsumeLogs))
	return struct {
		*limiter
		consumer.Logs
	}{l, c}, err
}

func createProfiles(_ context.Context, set processor.Settings, cfg component.Config, next xconsumer.Profiles) (xprocessor.Profiles, error) {
	l, err := newLimiter(set, cfg.(*Config), xpipeline.SignalProfiles)
	if err != nil {
		return nil, err
	}
	c, err := xconsumer.NewProfiles(governed(l, kind[pprofile.Profiles]{
		footprint.Profiles, pprofile.Profiles.SampleCount, footprint.ProfilesByResource, new(pprofile.ProtoMarshaler).ProfilesSize, lifetime.Profiles,
	}, next.ConsumeProfiles))
	return struct {
		*limiter
		xconsumer.Profiles
	}{l, c}, err
}
