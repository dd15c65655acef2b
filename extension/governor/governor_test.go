// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadata"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadatatest"
	"github.com/otel-governor/otel-governor/internal/cgroupmem"
)

// kernel is what a governor under test reads instead of this machine.
type fakeKernel struct {
	bytes atomic.Int64
	err   atomic.Pointer[error]
	usage atomic.Pointer[cgroupmem.Sample]

	collected func() // tells of the end of a collection
}

func (k *fakeKernel) limit() (machine, error) {
	if err := k.err.Load(); err != nil {
		return machine{}, *err
	}
	return machine{limit: k.bytes.Load(), source: "cgroup_v2", chosen: true}, nil
}

func (k *fakeKernel) sample() cgroupmem.Sample { return *k.usage.Load() }

func (k *fakeKernel) close() {}

func (k *fakeKernel) fail(err error) { k.err.Store(&err) }

// tested is a governor with all that a test looks at.
type tested struct {
	*governor
	kernel    *fakeKernel
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
}

// create returns a governor that is not started, in a process limited to 1 GiB.
func create(t *testing.T, change func(*Config)) *tested {
	t.Helper()
	c := createDefaultConfig()
	if change != nil {
		change(c)
	}
	require.NoError(t, c.Validate())
	tel := componenttest.NewTelemetry()
	core, logs := observer.New(zapcore.InfoLevel)
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	made, err := newGovernor(set, c)
	require.NoError(t, err)
	k := &fakeKernel{}
	k.bytes.Store(gib)
	k.usage.Store(&cgroupmem.Sample{
		Unreclaimable: cgroupmem.Unknown, MachineTotal: cgroupmem.Unknown, MachineAvailable: cgroupmem.Unknown,
	})
	made.kernel = k
	made.onGC = func(f func()) (stop func()) { // real ones come from outside of a test's bubble
		k.collected = f
		return func() {}
	}
	t.Cleanup(func() {
		require.NoError(t, made.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return &tested{governor: made, kernel: k, logs: logs, telemetry: tel}
}

// start returns a governor that runs behind synchronous pipelines.
func start(t *testing.T, change func(*Config)) *tested {
	t.Helper()
	g := create(t, change)
	require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t, "{}")))
	require.NoError(t, g.Ready())
	return g
}

// elapse lets virtual time pass.
func elapse(d time.Duration) { <-time.After(d) }

func snapshot(t *testing.T, yaml string) extensioncapabilities.ConfigSnapshot {
	t.Helper()
	r, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := r.AsConf()
	require.NoError(t, err)
	return extensioncapabilities.NewConfigSnapshot(conf, conf)
}

const asynchronous = `
exporters: {otlp: }
service: {pipelines: {traces: {receivers: [otlp], processors: [limiter], exporters: [otlp]}}}`

func (g *tested) gauge(t *testing.T, name string) int64 {
	t.Helper()
	m, err := g.telemetry.GetMetric("otelcol_" + name)
	require.NoError(t, err)
	points := m.Data.(metricdata.Sum[int64]).DataPoints
	require.Len(t, points, 1)
	return points[0].Value
}

func (g *tested) messages(level zapcore.Level) []string {
	var messages []string
	for _, e := range g.logs.All() {
		if e.Level == level {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

func TestPoolIsSizedOnceTheConfigurationIsKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want int64
	}{
		"synchronous":  {"{}", 768 * mib},
		"asynchronous": {asynchronous, 512 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			g := create(t, nil)
			require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
			require.EqualValues(t, 512*mib, g.gauge(t, "governor.memory.desired_limit"), "cautious until it is known")
			require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t, tt.yaml)))
			require.NoError(t, g.Ready())
			require.Equal(t, tt.want, g.gauge(t, "governor.memory.desired_limit"))
			require.Equal(t, min(tt.want, g.gauge(t, "governor.memory.budget")), g.gauge(t, "governor.memory.limit"))
			require.Equal(t, []string{"Memory pool sized"}, g.messages(zapcore.InfoLevel), "said once")
		})
	}
}

func TestTheDoorKeepsTheReceiversMessageSize(t *testing.T) {
	g := create(t, nil)
	g.id = component.MustNewID("governor")
	require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, g.NotifyConfigSnapshot(t.Context(), snapshot(t,
		"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 9, middlewares: [{id: governor}]}}}}")))
	require.EqualValues(t, 9*mib, g.door.MaxMessage)
}

func TestAHostThatTellsNothingOfItsConfiguration(t *testing.T) {
	g := create(t, nil)
	require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
	l, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
	require.NoError(t, err)
	l.Release(nil)
	require.NoError(t, g.Ready())
	require.EqualValues(t, 512*mib, g.gauge(t, "governor.memory.desired_limit"))
	require.Equal(t, []string{"Memory pool sized"}, g.messages(zapcore.InfoLevel))
}

func TestStartErrors(t *testing.T) {
	garbage := errors.New(`memory.max holds "lots"`)
	most := int64(600 * mib)
	for name, tt := range map[string]struct {
		change  func(*Config)
		limit   int64
		read    error
		yaml    string
		start   string
		settled string
	}{
		"too small":                          {limit: 40 * mib, start: "must be at least 33554432 (32MiB)"},
		"too small as queues keep data":      {limit: 60 * mib, yaml: asynchronous, settled: "the memory pool would be 31457280 bytes"},
		"large enough as none do":            {limit: 60 * mib, yaml: "{}"},
		"a batch larger than the pool":       {change: func(c *Config) { c.Admission.MaxBatchMemory = &most }, yaml: asynchronous, settled: "'admission::max_batch_memory' is 629145600 bytes and the memory pool is 536870912"},
		"a batch as large as the pool":       {change: func(c *Config) { c.Admission.MaxBatchMemory = &most }, yaml: "{}"},
		"a limit that cannot be read at all": {read: garbage, start: `the memory limit cannot be read: memory.max holds "lots"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := create(t, tt.change)
			if tt.limit != 0 {
				g.kernel.bytes.Store(tt.limit)
			}
			if tt.read != nil {
				g.kernel.fail(tt.read)
			}
			err := g.Start(t.Context(), componenttest.NewNopHost())
			if tt.start != "" {
				require.ErrorContains(t, err, tt.start)
				return
			}
			require.NoError(t, err)
			err = g.NotifyConfigSnapshot(t.Context(), snapshot(t, tt.yaml))
			if tt.settled != "" {
				require.ErrorContains(t, err, tt.settled)
				return
			}
			require.NoError(t, err)
		})
	}
}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

func TestASecondGovernorIsAStartError(t *testing.T) {
	g := create(t, nil)
	err := g.Start(t.Context(), extensions{
		component.NewID(metadata.Type):                g.governor,
		component.NewIDWithName(metadata.Type, "two"): g.governor,
		component.MustNewID("zpages"):                 nil,
	})
	require.EqualError(t, err, `service::extensions has 2 governors, ["governor" "governor/two"]:`+
		` a process has one memory, so name only one of them`)
}

func TestNothingBoundsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	off := func(c *Config) { c.Memory.GoMemLimitFraction = 0 }
	err := create(t, off).Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "garbage collection is off (GOGC=off) and Go has no memory limit")

	require.NoError(t, create(t, nil).Start(t.Context(), componenttest.NewNopHost()), "the limit that it sets is one")
	require.NoError(t, create(t, func(c *Config) { off(c); c.Mode = ModeObserve }).Start(t.Context(), componenttest.NewNopHost()))
}

func TestGoMemoryLimitFollowsAndIsRestored(t *testing.T) {
	const before = 7 * gib
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
	current := func() int64 { return debug.SetMemoryLimit(-1) }
	t.Run("derived", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := start(t, nil)
			require.EqualValues(t, 966367641, current())
			g.kernel.bytes.Store(2 * gib)
			elapse(31 * time.Second)
			require.EqualValues(t, 1932735283, current())
			require.NoError(t, g.Shutdown(t.Context()))
			require.EqualValues(t, before, current())
		})
	})
	t.Run("left alone", func(t *testing.T) {
		start(t, func(c *Config) { c.Memory.GoMemLimitFraction = 0 })
		require.EqualValues(t, before, current())
	})
	t.Run("the operator's", func(t *testing.T) {
		t.Setenv("GOMEMLIMIT", "7GiB")
		start(t, nil)
		require.EqualValues(t, before, current())
	})
}

func TestLiveResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, nil)
		refresh := func() { elapse(g.config.Memory.RefreshInterval); synctest.Wait() }
		held, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: 100 * mib}})
		require.NoError(t, err)

		g.kernel.bytes.Store(128 * mib)
		refresh()
		require.EqualValues(t, 96*mib, g.gauge(t, "governor.memory.desired_limit"))
		require.EqualValues(t, 100*mib, g.gauge(t, "governor.memory.usage"), "shrinking takes nothing back")
		_, err = g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		require.ErrorIs(t, err, admission.ErrOverloaded)
		held.Release(nil)
		l, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		require.NoError(t, err)
		l.Release(nil)

		g.kernel.fail(errors.New("gone"))
		refresh()
		refresh()
		require.EqualValues(t, 96*mib, g.gauge(t, "governor.memory.desired_limit"), "the last good value stays")
		metadatatest.AssertEqualGovernorProbeErrors(t, g.telemetry, []metricdata.DataPoint[int64]{
			{Value: 2, Attributes: attributes("governor.probe", "memory_limit")},
		}, metricdatatest.IgnoreTimestamp())
		require.Equal(t, 1, g.logs.FilterMessage("The memory limit cannot be read; the last one stays in force").Len(), "said once")

		g.kernel.err.Store(nil)
		g.kernel.bytes.Store(32 * mib)
		refresh()
		require.EqualValues(t, 24*mib, g.gauge(t, "governor.memory.desired_limit"))
		require.Contains(t, g.messages(zapcore.WarnLevel), "The memory pool is smaller than 32MiB; nearly everything will be refused")
		resized := g.logs.FilterMessage("Memory pool resized").Len()
		require.Equal(t, 2, resized)
	})
}

func TestEverybodyWhoWaitsIsAnsweredWhenPipelinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, func(c *Config) { c.Admission.MaxConcurrent = 1 })
		held, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		require.NoError(t, err)
		answers := make(chan error)
		for range 3 {
			go func() {
				_, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
				answers <- err
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 3, g.gauge(t, "governor.queue.usage"))
		require.NoError(t, g.NotReady())
		for range 3 {
			requireReason(t, admission.ShuttingDown, <-answers)
		}
		_, err = g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		requireReason(t, admission.ShuttingDown, err)
		held.Release(nil)
		flushed, err := g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		require.NoError(t, err, "batchers flush through limiters further down")
		flushed.Release(nil)
		require.NoError(t, g.Shutdown(t.Context()))
		_, err = g.Admit(t.Context(), admission.Request{Share: admission.Share{Memory: mib}})
		requireReason(t, admission.ShuttingDown, err)
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	require.NoError(t, create(t, nil).Shutdown(t.Context()))
}

func requireReason(t *testing.T, want admission.Reason, err error) *admission.Error {
	t.Helper()
	var refusal *admission.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, want, refusal.Reason, refusal)
	return refusal
}
