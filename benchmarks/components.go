// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/processor/processortest"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor"
	"github.com/otel-governor/otel-governor/processor/limiter"
)

// settings is where a component sends its telemetry.
type settings func() component.TelemetrySettings

// metricsOff is a Collector with metrics at level none: what is left is the component itself.
func metricsOff() component.TelemetrySettings { return componenttest.NewNopTelemetrySettings() }

// metricsOn adds what a Collector has by default, without its exporter.
func metricsOn() component.TelemetrySettings {
	set := metricsOff()
	set.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	return set
}

// host is a Collector's host with the extensions it is given.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// run starts a component and ends it with the benchmark.
func run(b *testing.B, c component.Component, h component.Host) {
	require.NoError(b, c.Start(b.Context(), h))
	b.Cleanup(func() { require.NoError(b, c.Shutdown(b.Context())) })
}

// startGovernor returns a host with a governor that runs with this configuration, where nothing keeps data after it has
// answered. It leaves Go's memory limit alone, so that whoever is measured next finds the process as it was.
func startGovernor(b *testing.B, telemetry settings, conf map[string]any) host {
	f := governor.NewFactory()
	set := extensiontest.NewNopSettings(f.Type())
	set.TelemetrySettings = telemetry()
	conf["memory"] = map[string]any{"pool_size": "256MiB", "gomemlimit_fraction": 0}
	g, err := f.Create(b.Context(), set, configure(b, f, conf))
	require.NoError(b, err)
	h := host{set.ID: g}
	run(b, g, h)
	nothingKeeps := extensioncapabilities.NewConfigSnapshot(confmap.New(), confmap.New())
	require.NoError(b, g.(extensioncapabilities.ConfigSnapshotWatcher).NotifyConfigSnapshot(b.Context(), nothingKeeps))
	return h
}

// governorOf returns the governor of a host, as a limiter finds it.
func governorOf(h host) admission.Governor {
	for _, c := range h {
		if g, is := c.(admission.Governor); is {
			return g
		}
	}
	panic("the host has no governor")
}

// processing puts a processor in front of a consumer.
type processing func(b *testing.B, next consumer.Traces) consumer.Traces

func nothing(_ *testing.B, next consumer.Traces) consumer.Traces { return next }

func limiterOf(telemetry settings) processing {
	return func(b *testing.B, next consumer.Traces) consumer.Traces {
		h := startGovernor(b, telemetry, map[string]any{})
		return startProcessor(b, limiter.NewFactory(), telemetry, map[string]any{}, h, next)
	}
}

func memoryLimiterOf(telemetry settings) processing {
	return func(b *testing.B, next consumer.Traces) consumer.Traces {
		return startProcessor(b, memorylimiterprocessor.NewFactory(), telemetry, map[string]any{
			"check_interval": "1s", "limit_percentage": 80, "spike_limit_percentage": 20,
		}, host{}, next)
	}
}

func startProcessor(b *testing.B, f processor.Factory, telemetry settings, conf map[string]any, h host, next consumer.Traces) consumer.Traces {
	set := processortest.NewNopSettings(f.Type())
	set.TelemetrySettings = telemetry()
	p, err := f.CreateTraces(b.Context(), set, configure(b, f, conf), next)
	require.NoError(b, err)
	run(b, p, h)
	return p
}

// configure returns a component's defaults with what conf changes.
func configure(b *testing.B, f component.Factory, conf map[string]any) component.Config {
	cfg := f.CreateDefaultConfig()
	require.NoError(b, confmap.NewFromStringMap(conf).Unmarshal(cfg))
	return cfg
}
