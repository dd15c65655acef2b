// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/processortest"
)

// batching is how a component puts batches together: sent from min on, and never
// larger than max. Without min, batches are handed on as they came.
type batching struct {
	sizer    exporterhelper.RequestSizerType
	min, max int64
}

// pusher is what a component hands its batches to.
type pusher[T any] = func(context.Context, T) error

// stock is a component of the Collector that keeps batches after it took them.
type stock[T any] struct {
	component.Component
	consume pusher[T]
}

// stocks are the components that a kind of batch can meet.
type stocks[T any] struct {
	signal[T]
	exporter  func(exporter.Settings, pusher[T], ...exporterhelper.Option) (component.Component, pusher[T], error)
	processor func(processor.Settings, component.Config, pusher[T]) (component.Component, pusher[T], error) // nil: there is none
}

var (
	batchProcessors = batchprocessor.NewFactory()

	tracesStocks = stocks[ptrace.Traces]{
		tracesSignal,
		func(set exporter.Settings, push pusher[ptrace.Traces], options ...exporterhelper.Option) (component.Component, pusher[ptrace.Traces], error) {
			e, err := exporterhelper.NewTraces(context.Background(), set, struct{}{}, push, options...)
			return e, e.ConsumeTraces, err
		},
		func(set processor.Settings, cfg component.Config, push pusher[ptrace.Traces]) (component.Component, pusher[ptrace.Traces], error) {
			next, _ := consumer.NewTraces(push)
			p, err := batchProcessors.CreateTraces(context.Background(), set, cfg, next)
			return p, p.ConsumeTraces, err
		},
	}
	logsStocks = stocks[plog.Logs]{
		logsSignal,
		func(set exporter.Settings, push pusher[plog.Logs], options ...exporterhelper.Option) (component.Component, pusher[plog.Logs], error) {
			e, err := exporterhelper.NewLogs(context.Background(), set, struct{}{}, push, options...)
			return e, e.ConsumeLogs, err
		},
		func(set processor.Settings, cfg component.Config, push pusher[plog.Logs]) (component.Component, pusher[plog.Logs], error) {
			next, _ := consumer.NewLogs(push)
			p, err := batchProcessors.CreateLogs(context.Background(), set, cfg, next)
			return p, p.ConsumeLogs, err
		},
	}
	profilesStocks = stocks[pprofile.Profiles]{
		profilesSignal,
		func(set exporter.Settings, push pusher[pprofile.Profiles], options ...exporterhelper.Option) (component.Component, pusher[pprofile.Profiles], error) {
			e, err := xexporterhelper.NewProfiles(context.Background(), set, struct{}{}, xconsumer.ConsumeProfilesFunc(push), options...)
			return e, e.ConsumeProfiles, err
		},
		nil,
	}
)

func metricsStocks(s signal[pmetric.Metrics]) stocks[pmetric.Metrics] {
	return stocks[pmetric.Metrics]{
		s,
		func(set exporter.Settings, push pusher[pmetric.Metrics], options ...exporterhelper.Option) (component.Component, pusher[pmetric.Metrics], error) {
			e, err := exporterhelper.NewMetrics(context.Background(), set, struct{}{}, push, options...)
			return e, e.ConsumeMetrics, err
		},
		func(set processor.Settings, cfg component.Config, push pusher[pmetric.Metrics]) (component.Component, pusher[pmetric.Metrics], error) {
			next, _ := consumer.NewMetrics(push)
			p, err := batchProcessors.CreateMetrics(context.Background(), set, cfg, next)
			return p, p.ConsumeMetrics, err
		},
	}
}

// startExporter starts an exporter with a sending queue in memory and one consumer,
// so that pushes come one by one and a push that comes says that the one before is
// over.
func (s stocks[T]) startExporter(t *testing.T, b batching, push pusher[T]) stock[T] {
	cfg := exporterhelper.NewDefaultQueueConfig()
	cfg.NumConsumers = 1
	if b.min > 0 {
		batch := exporterhelper.BatchConfig{FlushTimeout: time.Hour, Sizer: b.sizer, MinSize: b.min, MaxSize: b.max}
		cfg.Batch = configoptional.Some(batch)
	}
	c, consume, err := s.exporter(exportertest.NewNopSettings(component.MustNewType("stock")), push,
		exporterhelper.WithQueue(configoptional.Some(cfg)), exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background(), componenttest.NewNopHost()))
	return stock[T]{c, consume}
}

func (s stocks[T]) startBatchProcessor(t *testing.T, b batching, push pusher[T]) stock[T] {
	cfg := batchProcessors.CreateDefaultConfig().(*batchprocessor.Config)
	cfg.Timeout, cfg.SendBatchSize, cfg.SendBatchMaxSize = time.Hour, uint32(b.min), uint32(b.max)
	c, consume, err := s.processor(processortest.NewNopSettings(batchProcessors.Type()), cfg, push)
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background(), componenttest.NewNopHost()))
	return stock[T]{c, consume}
}
