// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap/zapcore"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/extension/governor/internal/metadatatest"
)

// attributes builds a set from names and values.
func attributes(kv ...string) attribute.Set {
	var attrs []attribute.KeyValue
	for i := 0; i < len(kv); i += 2 {
		attrs = append(attrs, attribute.String(kv[i], kv[i+1]))
	}
	return attribute.NewSet(attrs...)
}

func traces(memory, items int64) admission.Request {
	return admission.Request{Share: admission.Share{Memory: memory, Items: items}, Signal: "traces"}
}

// small is a governor of 64 MiB, two batches at a time, one waiter and at most 1000 items a batch.
func small(t *testing.T) *tested {
	return start(t, func(c *Config) {
		size := int64(64 * mib)
		c.Memory.PoolSize = &size
		c.Admission.MaxConcurrent = 2
		c.Admission.MaxQueued = 1
		c.Admission.MaxBatchItems = 1000
	})
}

func TestRefusals(t *testing.T) {
	gone, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("hung up")
	cancel(errGone)
	for name, tt := range map[string]struct {
		held            []int64 // bytes of batches at work
		ctx             context.Context
		ask             admission.Request
		reason          admission.Reason
		observed, limit int64
		waits           time.Duration
	}{
		"too many items":       {ask: traces(mib, 1001), reason: admission.BatchItems, observed: 1001, limit: 1000},
		"too large a batch":    {ask: traces(101*mib, 1), reason: admission.BatchMemory, observed: 101 * mib, limit: 100 * mib},
		"larger than the pool": {ask: traces(65*mib, 1), reason: admission.MemoryLimit, observed: 65 * mib, limit: 64 * mib},
		"no memory":            {held: []int64{60 * mib}, ask: traces(5*mib, 1), reason: admission.MemoryContended, observed: 5 * mib, limit: 64 * mib, waits: time.Second},
		"no slot":              {held: []int64{mib, mib}, ask: traces(mib, 1), reason: admission.QueueTimeout, observed: 1000, limit: 1000, waits: time.Second},
		"gone":                 {ctx: gone, ask: traces(mib, 1), reason: admission.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := small(t)
				for _, bytes := range tt.held {
					l, err := g.Admit(t.Context(), traces(bytes, 1))
					require.NoError(t, err)
					defer l.Release(nil)
				}
				ctx := tt.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				asked := time.Now()
				_, err := g.Admit(ctx, tt.ask)
				require.Equal(t, tt.waits, time.Since(asked))
				refusal := requireReason(t, tt.reason, err)
				require.Equal(t, tt.observed, refusal.Observed)
				require.Equal(t, tt.limit, refusal.Limit)
				require.Equal(t, "default", refusal.Tenant)
				if tt.reason.Delayed() {
					require.GreaterOrEqual(t, refusal.RetryAfter, time.Second)
					require.Less(t, refusal.RetryAfter, 3*time.Second)
				} else {
					require.Zero(t, refusal.RetryAfter)
				}
				if tt.reason == admission.Canceled {
					require.ErrorIs(t, err, errGone)
				}
				metadatatest.AssertEqualGovernorBatchDuration(t, g.telemetry, []metricdata.HistogramDataPoint[float64]{{
					Attributes: attributes("otelcol.signal", "traces", "governor.phase", "batch", "error.type", string(tt.reason)),
					Count:      1,
				}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreValue())
			})
		})
	}
}

func TestLineFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := small(t)
		held, err := g.Admit(t.Context(), traces(60*mib, 1))
		require.NoError(t, err)
		served := make(chan error)
		go func() {
			l, err := g.Admit(t.Context(), traces(8*mib, 1))
			if err == nil {
				l.Release(nil)
			}
			served <- err
		}()
		synctest.Wait()
		_, err = g.Admit(t.Context(), traces(8*mib, 1))
		refusal := requireReason(t, admission.QueueFull, err)
		require.EqualValues(t, 1, refusal.Observed)
		require.EqualValues(t, 1, refusal.Limit)
		held.Release(nil)
		require.NoError(t, <-served)
		require.Zero(t, g.gauge(t, "governor.memory.usage"))
		require.Zero(t, g.gauge(t, "governor.queue.usage"))
	})
}

func TestWhatAnAdmittedBatchLeavesInTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := small(t)
		first, err := g.Admit(t.Context(), traces(60*mib, 10))
		require.NoError(t, err)
		require.EqualValues(t, 60*mib, g.gauge(t, "governor.memory.usage"))
		require.EqualValues(t, 1, g.gauge(t, "governor.concurrency.usage"))
		go func() {
			elapse(300 * time.Millisecond)
			first.Release(errors.New("downstream"))
			first.Release(nil) // does nothing
		}()
		second, err := g.Admit(t.Context(), traces(10*mib, 10))
		require.NoError(t, err)
		elapse(20 * time.Millisecond)
		second.Release(nil)

		opts := []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}
		bounds := []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60}
		point := func(attrs attribute.Set, sum, lowest, highest float64, buckets map[int]uint64) []metricdata.HistogramDataPoint[float64] {
			p := metricdata.HistogramDataPoint[float64]{
				Attributes: attrs, Bounds: bounds, Sum: sum,
				BucketCounts: make([]uint64, len(bounds)+1),
				Min:          metricdata.NewExtrema(lowest), Max: metricdata.NewExtrema(highest),
			}
			for i, n := range buckets {
				p.BucketCounts[i] = n
				p.Count += n
			}
			return []metricdata.HistogramDataPoint[float64]{p}
		}
		signal := attributes("otelcol.signal", "traces")
		metadatatest.AssertEqualGovernorBatchDuration(t, g.telemetry,
			point(attributes("otelcol.signal", "traces", "governor.phase", "batch"), 0.62, 0.3, 0.32, map[int]uint64{7: 2}), opts...)
		metadatatest.AssertEqualGovernorBatchWaitDuration(t, g.telemetry,
			point(signal, 0.3, 0, 0.3, map[int]uint64{0: 1, 7: 1}), opts...)
		metadatatest.AssertEqualGovernorBatchProcessingDuration(t, g.telemetry,
			point(signal, 0.32, 0.02, 0.3, map[int]uint64{5: 1, 7: 1}), opts...)
		metadatatest.AssertEqualGovernorBatchMemory(t, g.telemetry, []metricdata.HistogramDataPoint[int64]{{
			Attributes: signal, Count: 2, Sum: 70 * mib,
			Bounds:       []float64{1024, 8192, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456},
			BucketCounts: []uint64{0, 0, 0, 0, 0, 0, 1, 1, 0, 0},
			Min:          metricdata.NewExtrema[int64](10 * mib), Max: metricdata.NewExtrema[int64](60 * mib),
		}}, opts...)
		require.Zero(t, g.gauge(t, "governor.memory.usage"))
		require.Zero(t, g.gauge(t, "governor.concurrency.usage"))
	})
}

func TestRefusalUnderALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := small(t)
		l, err := g.Admit(t.Context(), traces(mib, 1))
		require.NoError(t, err)
		refusal := l.Refuse(t.Context(), admission.ProcessingTimeout, 31000, 30000)
		require.GreaterOrEqual(t, refusal.RetryAfter, time.Second)
		require.EqualValues(t, mib, g.gauge(t, "governor.memory.usage"), "the lease still holds")
		l.Release(refusal)
		metadatatest.AssertEqualGovernorBatchDuration(t, g.telemetry, []metricdata.HistogramDataPoint[float64]{{
			Attributes: attributes("otelcol.signal", "traces", "governor.phase", "batch", "error.type", "processing_timeout"),
		}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreValue())
	})
}

func TestALeaseThatIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := small(t)
		c, first, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces", MaxBatchItems: 10})
		require.NoError(t, err)
		require.True(t, first)

		estimate := traces(20*mib, 1)
		estimate.Provisional = true
		root, err := g.Admit(t.Context(), estimate)
		require.NoError(t, err)
		truth := traces(5*mib, 5)
		truth.Ceilings = c
		part, err := root.Settle(t.Context(), truth)
		require.NoError(t, err)
		require.EqualValues(t, 5*mib, g.gauge(t, "governor.memory.usage"), "the estimate is replaced")
		usage, limit := c.Memory()
		require.EqualValues(t, 5*mib, usage)
		require.EqualValues(t, 64*mib, limit)

		larger, err := part.Settle(t.Context(), traces(8*mib, 5))
		require.NoError(t, err)
		require.EqualValues(t, 8*mib, g.gauge(t, "governor.memory.usage"), "the larger of what is held and asked")
		require.EqualValues(t, 1, g.gauge(t, "governor.concurrency.usage"))
		larger.Release(nil)
		require.EqualValues(t, 5*mib, g.gauge(t, "governor.memory.usage"))

		_, err = root.Settle(t.Context(), traces(65*mib, 5))
		requireReason(t, admission.MemoryLimit, err)
		many := traces(mib, 11)
		many.Ceilings = c
		_, err = root.Settle(t.Context(), many)
		requireReason(t, admission.BatchItems, err)

		require.NoError(t, root.Grow(t.Context(), 10*mib))
		require.EqualValues(t, 15*mib, g.gauge(t, "governor.memory.usage"))
		require.NoError(t, root.Grow(t.Context(), -10*mib))
		err = root.Grow(t.Context(), 60*mib)
		requireReason(t, admission.MemoryLimit, err)
		require.EqualValues(t, 5*mib, g.gauge(t, "governor.memory.usage"), "a growth that is refused leaves what there was")

		part.Release(nil)
		root.Release(nil)
		require.Zero(t, g.gauge(t, "governor.memory.usage"))
		for _, late := range []admission.Request{truth, many, traces(200*mib, 1)} {
			_, err = root.Settle(t.Context(), late)
			require.ErrorIs(t, err, admission.ErrReleased, "whatever is asked of a lease that has ended")
		}
		require.Equal(t, "default", part.Refuse(t.Context(), admission.Panicked, 0, 0).Tenant)
		require.ErrorIs(t, root.Grow(t.Context(), 1), admission.ErrReleased)
		metadatatest.AssertEqualGovernorBatchDuration(t, g.telemetry, []metricdata.HistogramDataPoint[float64]{{
			Attributes: attributes("otelcol.signal", "traces", "governor.phase", "wire"),
		}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreValue())
	})
}

func TestRegisterLowersAndNeverRaises(t *testing.T) {
	g := start(t, nil)
	_, _, err := g.Register(admission.Limits{
		MaxBatchMemory: 200 * mib, MaxConcurrent: 5000, ProcessingTimeout: time.Minute,
	})
	require.EqualError(t, err, "limits::max_batch_memory 209715200 exceeds the governor's admission::max_batch_memory of 104857600\n"+
		"limits::processing_timeout 1m0s exceeds the governor's admission::processing_timeout of 30s")

	c, first, err := g.Register(admission.Limits{Component: "a", Signal: "logs", MaxConcurrent: 5000})
	require.NoError(t, err)
	require.True(t, first)
	_, limit := c.Concurrency()
	require.EqualValues(t, 1024, limit, "capped without a word")
	require.Equal(t, 30*time.Second, c.ProcessingTimeout())

	again, first, err := g.Register(admission.Limits{Component: "a", Signal: "logs"})
	require.NoError(t, err)
	require.False(t, first)
	require.Same(t, c, again)

	lower, _, err := g.Register(admission.Limits{Component: "b", MaxConcurrent: 3, ProcessingTimeout: time.Second})
	require.NoError(t, err)
	_, limit = lower.Concurrency()
	require.EqualValues(t, 3, limit)
	require.Equal(t, time.Second, lower.ProcessingTimeout())

	g = start(t, func(c *Config) { c.Admission.MaxBatchItems = 100; c.Admission.ProcessingTimeout = 0 })
	_, _, err = g.Register(admission.Limits{MaxBatchItems: 101})
	require.EqualError(t, err, "limits::max_batch_items 101 exceeds the governor's admission::max_batch_items of 100")
	c, _, err = g.Register(admission.Limits{ProcessingTimeout: time.Hour})
	require.NoError(t, err, "anything is lower than none")
	require.Equal(t, time.Hour, c.ProcessingTimeout())
}

func TestObserveAdmitsEverythingAtOnceAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, func(c *Config) {
			size := int64(64 * mib)
			c.Mode = ModeObserve
			c.Memory.PoolSize = &size
			c.Admission.MaxConcurrent = 2
			c.Admission.MaxBatchItems = 1000
			c.Admission.ProcessingTimeout = time.Second
		})
		c, _, err := g.Register(admission.Limits{Component: "limiter", Signal: "traces"})
		require.NoError(t, err)
		require.Zero(t, c.ProcessingTimeout(), "nothing is cut short")
		asked := time.Now()
		var leases []admission.Lease
		for _, r := range []admission.Request{
			traces(mib, 1),
			traces(101*mib, 1), // batch_memory
			traces(mib, 1001),  // batch_items
			traces(65*mib, 1),  // memory_limit
			traces(mib, 1),     // no slot any more
		} {
			l, err := g.Admit(t.Context(), r)
			require.NoError(t, err)
			leases = append(leases, l)
		}
		require.NoError(t, leases[0].Grow(t.Context(), 10*mib))  // memory_contended
		require.NoError(t, leases[0].Grow(t.Context(), 100*mib)) // memory_limit
		require.Zero(t, time.Since(asked), "nobody waits")
		require.EqualValues(t, (1+101+1+65+1+110)*mib, g.gauge(t, "governor.memory.usage"))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = g.Admit(gone, traces(mib, 1))
		requireReason(t, admission.Canceled, err)
		elapse(2 * time.Second)
		for _, l := range leases[:2] {
			l.Release(nil) // processing_timeout
		}
		for _, l := range leases[2:] {
			l.Release(errors.New("x")) // processing_timeout
		}
		require.Zero(t, g.gauge(t, "governor.memory.usage"))
		var want []metricdata.DataPoint[int64]
		for reason, n := range map[string]int64{
			"batch_memory": 1, "batch_items": 1, "memory_limit": 2, "queue_timeout": 1, "memory_contended": 1, "processing_timeout": 5,
		} {
			want = append(want, metricdata.DataPoint[int64]{Value: n, Attributes: attributes("error.type", reason)})
		}
		metadatatest.AssertEqualGovernorObservedRefusals(t, g.telemetry, want, metricdatatest.IgnoreTimestamp())
	})
}

func TestRefusalsAreLoggedAsOneLineAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := small(t)
		for range 1000 {
			_, err := g.Admit(t.Context(), traces(65*mib, 1))
			require.Error(t, err)
		}
		require.Empty(t, g.messages(zapcore.WarnLevel))
		elapse(summaryInterval)
		synctest.Wait()
		require.Equal(t, []string{"Batches were refused"}, g.messages(zapcore.WarnLevel))
		elapse(summaryInterval)
		synctest.Wait()
		require.Len(t, g.messages(zapcore.WarnLevel), 1, "nothing to say, nothing said")
	})
}

func TestARefusalIsAnEventOfTheCurrentSpan(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	g := small(t)
	ctx, span := tel.NewTelemetrySettings().TracerProvider.Tracer("test").Start(t.Context(), "export")
	_, err := g.Admit(ctx, traces(65*mib, 1))
	require.Error(t, err)
	span.End()
	events := tel.SpanRecorder.Ended()[0].Events()
	require.Len(t, events, 1)
	require.Equal(t, "governor.refused", events[0].Name)
	require.Contains(t, events[0].Attributes, attribute.String("error.type", "memory_limit"))
}

func TestDelaysDoubleOncePerDelayAndAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d delay
		base := func() time.Duration { return d.base }
		d.next(time.Now())
		require.Equal(t, time.Second, base())
		for range 100 { // a flood within one delay counts once
			got := d.next(time.Now())
			require.GreaterOrEqual(t, got, time.Second)
			require.Less(t, got, 3*time.Second)
		}
		require.Equal(t, time.Second, base())
		for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second} {
			elapse(base())
			got := d.next(time.Now())
			require.Equal(t, want, base())
			require.GreaterOrEqual(t, got, want)
			require.Less(t, got, want+delaySpread)
		}
		elapse(2*base() + delaySpread + 1) // they came back and were not refused
		d.next(time.Now())
		require.Equal(t, time.Second, base())

		seconds := map[int]int{}
		for range 1000 {
			seconds[int(d.next(time.Now()).Seconds())]++
		}
		require.Len(t, seconds, 2, "over HTTP, whole seconds are what is left of the spread")
	})
}
