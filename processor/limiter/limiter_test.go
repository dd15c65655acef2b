// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
	"github.com/otel-governor/otel-governor/processor/limiter/internal/metadata"
	"github.com/otel-governor/otel-governor/processor/limiter/internal/metadatatest"
)

// tested is a limiter for one signal, and what a test needs of it.
type tested struct {
	component.Component
	send      func(context.Context, int) error // a batch of this many items
	weight    func(int) int64                  // of such a batch
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

type next func(ctx context.Context, items int) error

var signals = map[string]func(*testing.T, processor.Settings, *Config, next) tested{
	"traces": func(t *testing.T, set processor.Settings, cfg *Config, next next) tested {
		c, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error { return next(ctx, td.SpanCount()) })
		require.NoError(t, err)
		p, err := NewFactory().CreateTraces(t.Context(), set, cfg, c)
		require.NoError(t, err)
		require.False(t, p.Capabilities().MutatesData)
		batch := func(n int) ptrace.Traces {
			td := ptrace.NewTraces()
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for range n {
				spans.AppendEmpty().SetName("a name")
			}
			td.MarkReadOnly() // changing it is a panic from here on
			return td
		}
		return tested{
			Component: p,
			send:      func(ctx context.Context, n int) error { return p.ConsumeTraces(ctx, batch(n)) },
			weight:    func(n int) int64 { return footprint.Traces(batch(n)) },
		}
	},
	"metrics": func(t *testing.T, set processor.Settings, cfg *Config, next next) tested {
		c, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error { return next(ctx, md.DataPointCount()) })
		require.NoError(t, err)
		p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, c)
		require.NoError(t, err)
		require.False(t, p.Capabilities().MutatesData)
		batch := func(n int) pmetric.Metrics {
			md := pmetric.NewMetrics()
			points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySum().DataPoints()
			for range n {
				points.AppendEmpty().SetIntValue(1)
			}
			md.MarkReadOnly() // changing it is a panic from here on
			return md
		}
		return tested{
			Component: p,
			send:      func(ctx context.Context, n int) error { return p.ConsumeMetrics(ctx, batch(n)) },
			weight:    func(n int) int64 { return footprint.Metrics(batch(n)) },
		}
	},
	"logs": func(t *testing.T, set processor.Settings, cfg *Config, next next) tested {
		c, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error { return next(ctx, ld.LogRecordCount()) })
		require.NoError(t, err)
		p, err := NewFactory().CreateLogs(t.Context(), set, cfg, c)
		require.NoError(t, err)
		require.False(t, p.Capabilities().MutatesData)
		batch := func(n int) plog.Logs {
			ld := plog.NewLogs()
			records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for range n {
				records.AppendEmpty().Body().SetStr("a body")
			}
			ld.MarkReadOnly() // changing it is a panic from here on
			return ld
		}
		return tested{
			Component: p,
			send:      func(ctx context.Context, n int) error { return p.ConsumeLogs(ctx, batch(n)) },
			weight:    func(n int) int64 { return footprint.Logs(batch(n)) },
		}
	},
	"profiles": func(t *testing.T, set processor.Settings, cfg *Config, next next) tested {
		c, err := xconsumer.NewProfiles(func(ctx context.Context, pd pprofile.Profiles) error { return next(ctx, pd.SampleCount()) })
		require.NoError(t, err)
		p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, cfg, c)
		require.NoError(t, err)
		require.False(t, p.Capabilities().MutatesData)
		batch := func(n int) pprofile.Profiles {
			pd := pprofile.NewProfiles()
			samples := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
			for range n {
				samples.AppendEmpty().SetStackIndex(1)
			}
			pd.MarkReadOnly() // changing it is a panic from here on
			return pd
		}
		return tested{
			Component: p,
			send:      func(ctx context.Context, n int) error { return p.ConsumeProfiles(ctx, batch(n)) },
			weight:    func(n int) int64 { return footprint.Profiles(batch(n)) },
		}
	},
}

// create returns a limiter that is not started.
func create(t *testing.T, signal string, cfg *Config, next next) tested {
	t.Helper()
	tel := componenttest.NewTelemetry()
	core, logs := observer.New(zapcore.InfoLevel)
	set := processor.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	l := signals[signal](t, set, cfg, next)
	l.telemetry, l.logs = tel, logs
	t.Cleanup(func() {
		require.NoError(t, l.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return l
}

// start returns a limiter that runs with the governor of h.
func start(t *testing.T, h host, signal string, next next) tested {
	t.Helper()
	l := create(t, signal, createDefaultConfig().(*Config), next)
	require.NoError(t, l.Start(t.Context(), h))
	return l
}

func (h host) governor() admission.Governor { return h[governorID].(admission.Governor) }

// held returns what the governor's leases of one user hold now.
func held(t *testing.T, h host, signal string) (bytes, batches int64) {
	t.Helper()
	c, _, err := h.governor().Register(admission.Limits{Component: "limiter", Signal: signal})
	require.NoError(t, err)
	bytes, _ = c.Memory()
	batches, _ = c.Concurrency()
	return bytes, batches
}

var tiny = map[string]any{"memory": map[string]any{"pool_size": "32MiB"}}

func limited(key string, value any) map[string]any {
	return map[string]any{"memory": map[string]any{"pool_size": "32MiB"}, "admission": map[string]any{key: value}}
}

func itemsPoint(signal, outcome string, value int64) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Value: value, Attributes: attribute.NewSet(
		attribute.String("otelcol.component.id", "limiter"),
		attribute.String("otelcol.signal", signal),
		attribute.String("otelcol.component.outcome", outcome),
	)}
}

func TestEverySignalTakesTheSameWay(t *testing.T) {
	for signal := range signals {
		t.Run(signal, func(t *testing.T) {
			h := startGovernor(t, limited("max_batch_items", 100))
			calls := 0
			var l tested
			failing := errors.New("downstream says no")
			l = start(t, h, signal, func(ctx context.Context, items int) error {
				calls++
				bytes, batches := held(t, h, signal)
				require.Equal(t, l.weight(items), bytes, "the lease is held while the next one works")
				require.EqualValues(t, 1, batches)
				require.NotNil(t, admission.LeaseFromContext(ctx))
				if items == 7 {
					return failing
				}
				return nil
			})
			require.NoError(t, l.send(t.Context(), 10))
			require.NoError(t, l.send(t.Context(), 0))
			require.Same(t, failing, l.send(t.Context(), 7), "an answer from downstream is passed on as it is")
			err := l.send(t.Context(), 101)
			require.ErrorIs(t, err, admission.ErrLimitExceeded)
			require.True(t, consumererror.IsPermanent(err))
			require.Equal(t, 3, calls, "what is refused goes no further")
			bytes, batches := held(t, h, signal)
			require.Zero(t, bytes)
			require.Zero(t, batches)

			metadatatest.AssertEqualLimiterItems(t, l.telemetry, []metricdata.DataPoint[int64]{
				itemsPoint(signal, "success", 10), itemsPoint(signal, "refused", 7), itemsPoint(signal, "failure", 101),
			}, metricdatatest.IgnoreTimestamp())
			attrs := attribute.NewSet(attribute.String("otelcol.component.id", "limiter"), attribute.String("otelcol.signal", signal))
			at := func(v int64) []metricdata.DataPoint[int64] {
				return []metricdata.DataPoint[int64]{{Value: v, Attributes: attrs}}
			}
			metadatatest.AssertEqualLimiterMemoryUsage(t, l.telemetry, at(0), metricdatatest.IgnoreTimestamp())
			metadatatest.AssertEqualLimiterMemoryLimit(t, l.telemetry, at(32<<20), metricdatatest.IgnoreTimestamp())
			metadatatest.AssertEqualLimiterConcurrencyUsage(t, l.telemetry, at(0), metricdatatest.IgnoreTimestamp())
			metadatatest.AssertEqualLimiterConcurrencyLimit(t, l.telemetry, at(1024), metricdatatest.IgnoreTimestamp())
		})
	}
}

func TestBatchOf100000Items(t *testing.T) {
	h := startGovernor(t, tiny)
	l := start(t, h, "traces", func(context.Context, int) error { return nil })
	require.Greater(t, l.weight(100000), int64(20<<20))
	require.NoError(t, l.send(t.Context(), 100000))
	err := l.send(t.Context(), 200000)
	require.ErrorContains(t, err, "memory_limit")
}

func TestAPanicIsTheAnswerToThatBatchAlone(t *testing.T) {
	h := startGovernor(t, tiny)
	l := start(t, h, "logs", func(_ context.Context, items int) error {
		if items == 13 {
			panic("unlucky")
		}
		return nil
	})
	err := l.send(t.Context(), 13)
	require.ErrorContains(t, err, "panic")
	require.NotContains(t, err.Error(), "unlucky", "a client is not told what is inside")
	require.True(t, consumererror.IsPermanent(err))
	bytes, batches := held(t, h, "logs")
	require.Zero(t, bytes+batches)
	require.NoError(t, l.send(t.Context(), 12))
	logged := l.logs.FilterMessage("Processing a batch panicked").All()
	require.Len(t, logged, 1)
	require.Equal(t, "unlucky", logged[0].ContextMap()["panic"])
	require.Contains(t, logged[0].ContextMap()["stack"], "limiter_test.go")
}

func TestAGoroutineThatEndsReleasesItsLease(t *testing.T) {
	h := startGovernor(t, tiny)
	l := start(t, h, "logs", func(context.Context, int) error { runtime.Goexit(); return nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.send(context.Background(), 1)
	}()
	<-done
	bytes, batches := held(t, h, "logs")
	require.Zero(t, bytes+batches)
}

func TestTwoLimitersInOnePipelineCountOnce(t *testing.T) {
	h := startGovernor(t, tiny)
	inside := start(t, h, "traces", func(context.Context, int) error {
		bytes, batches := held(t, h, "traces")
		require.NotZero(t, bytes)
		require.EqualValues(t, 2, batches, "each is passed by one batch")
		return nil
	})
	outside := start(t, h, "traces", func(ctx context.Context, items int) error {
		lease := admission.LeaseFromContext(ctx)
		before, _ := held(t, h, "traces")
		require.NoError(t, inside.send(ctx, items))
		after, _ := held(t, h, "traces")
		require.Equal(t, before, after)
		require.Same(t, lease, admission.LeaseFromContext(ctx))
		return nil
	})
	// A pool in which the batch fits once and not twice.
	items := 100000
	require.Less(t, outside.weight(items), int64(32<<20))
	require.Greater(t, 2*outside.weight(items), int64(32<<20))
	require.NoError(t, outside.send(t.Context(), items))
}

func TestALeaseTakenBeforeDecodingIsSettled(t *testing.T) {
	h := startGovernor(t, tiny)
	l := start(t, h, "logs", func(context.Context, int) error { return nil })
	estimate, err := h.governor().Admit(t.Context(), admission.Request{
		Share: admission.Share{Memory: 30 << 20, Items: 1}, Signal: "logs", Provisional: true,
	})
	require.NoError(t, err)
	ctx := admission.ContextWithLease(t.Context(), estimate)
	require.NoError(t, l.send(ctx, 10))

	other, err := h.governor().Admit(t.Context(), admission.Request{Share: admission.Share{Memory: 30 << 20}, Signal: "logs"})
	require.NoError(t, err, "the estimate was replaced by the little that it really was")
	other.Release(nil)
	estimate.Release(nil)

	require.NoError(t, l.send(ctx, 10), "a lease that has ended is no lease")
}

func TestStartErrors(t *testing.T) {
	id := func(s string) *ExtensionID {
		var id ExtensionID
		require.NoError(t, id.UnmarshalText([]byte(s)))
		return &id
	}
	for name, tt := range map[string]struct {
		extensions host
		wanted     *ExtensionID
		want       string
	}{
		"none":         {host{}, nil, "there is no governor: add the extension governor to extensions and to service::extensions"},
		"not running":  {newTestHost().(host), id("governor/b"), `'governor' names the extension "governor/b", which is not in service::extensions`},
		"another kind": {host{id("zpages").ID: nil}, id("zpages"), `'governor' names the extension "zpages", which is not a governor`},
		"several": {
			host{id("governor").ID: newTestHost().(host)[governorID], id("other").ID: newTestHost().(host)[governorID]},
			nil,
			"there are several governors (governor, other): name one as 'governor'",
		},
		"named among several": {
			host{id("governor").ID: newTestHost().(host)[governorID], id("other").ID: newTestHost().(host)[governorID]}, id("other"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t, "traces", &Config{Governor: tt.wanted}, func(context.Context, int) error { return nil })
			if err := l.Start(t.Context(), tt.extensions); tt.want != "" {
				require.EqualError(t, err, tt.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestLimitsLowerAndNeverRaise(t *testing.T) {
	h := startGovernor(t, nil)
	minute := time.Minute
	l := create(t, "traces", &Config{Limits: LimitsConfig{ProcessingTimeout: &minute}}, func(context.Context, int) error { return nil })
	require.EqualError(t, l.Start(t.Context(), h),
		"limits::processing_timeout 1m0s exceeds the governor's admission::processing_timeout of 30s")

	few := int64(3)
	l = create(t, "traces", &Config{Limits: LimitsConfig{MaxBatchItems: &few}}, func(context.Context, int) error { return nil })
	require.NoError(t, l.Start(t.Context(), h))
	require.NoError(t, l.send(t.Context(), 3))
	require.ErrorContains(t, l.send(t.Context(), 4), "batch_items: the batch has 4 items and max_batch_items is 3")
}

func TestALimitersOwnConcurrencyMakesItsBatchesWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := startGovernor(t, tiny)
		one := int64(1)
		busy, finish := make(chan struct{}), make(chan struct{})
		l := create(t, "traces", &Config{Limits: LimitsConfig{MaxConcurrent: &one}}, func(context.Context, int) error {
			busy <- struct{}{}
			<-finish
			return nil
		})
		require.NoError(t, l.Start(t.Context(), h))
		other := start(t, h, "logs", func(context.Context, int) error { return nil })
		answers := make(chan error, 2)
		for range 2 {
			go func() { answers <- l.send(context.Background(), 1) }()
		}
		<-busy
		synctest.Wait()
		require.NoError(t, other.send(t.Context(), 1), "those who wait for their own ceiling are passed over")
		finish <- struct{}{}
		<-busy
		finish <- struct{}{}
		require.NoError(t, <-answers)
		require.NoError(t, <-answers)
	})
}

func TestOneLimiterInTwoPipelinesReportsOnce(t *testing.T) {
	h := startGovernor(t, tiny)
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := processor.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings()}
	for range 2 {
		l := signals["traces"](t, set, createDefaultConfig().(*Config), func(context.Context, int) error { return nil })
		require.NoError(t, l.Start(t.Context(), h))
		defer func() { require.NoError(t, l.Shutdown(context.Background())) }()
	}
	metadatatest.AssertEqualLimiterConcurrencyLimit(t, tel, []metricdata.DataPoint[int64]{{Value: 1024, Attributes: attribute.NewSet(
		attribute.String("otelcol.component.id", "limiter"), attribute.String("otelcol.signal", "traces"),
	)}}, metricdatatest.IgnoreTimestamp())
}

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		conf map[string]any
		want string
	}{
		"everything": {map[string]any{
			"governor": "governor/b",
			"limits": map[string]any{
				"max_batch_memory": "4MiB", "max_batch_items": 5, "max_concurrent": 6, "processing_timeout": "7s",
			},
		}, ""},
		"out of range": {map[string]any{"limits": map[string]any{
			"max_batch_memory": 0, "max_batch_items": -5, "max_concurrent": 0, "processing_timeout": "0s",
		}}, "'limits::max_batch_memory' must be at least 1, got 0\n'limits::max_batch_items' must be at least 1, got -5\n" +
			"'limits::max_concurrent' must be at least 1, got 0\n'limits::processing_timeout' must be at least 1ms, got 0s"},
		"out of range, and not decodable": {
			map[string]any{"limits": map[string]any{"max_batch_memory": 0, "max_concurrent": "few"}},
			"'limits::max_concurrent' must be a whole number below 2^63, without leading zeros, got few\n" +
				"'limits::max_batch_memory' must be at least 1, got 0",
		},
		"no id": {map[string]any{"governor": "a b/"}, "'governor' must be the id of an extension such as governor or governor/name, got a b/"},
	} {
		t.Run(name, func(t *testing.T) {
			c := createDefaultConfig().(*Config)
			err := c.Unmarshal(confmap.NewFromStringMap(tt.conf))
			if err == nil {
				err = c.Validate()
			}
			if tt.want != "" {
				require.EqualError(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "governor/b", c.Governor.String())
			require.Equal(t, LimitsConfig{
				MaxBatchMemory: new(int64(4 << 20)), MaxBatchItems: new(int64(5)), MaxConcurrent: new(int64(6)),
				ProcessingTimeout: new(7 * time.Second),
			}, c.Limits)
		})
	}
}
