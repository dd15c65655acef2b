// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestPdataIsBuiltAsThisPackageKnows is the guard against an upgrade of pdata that
// hides its objects in another way: in the product, nothing would be followed then.
func TestPdataIsBuiltAsThisPackageKnows(t *testing.T) {
	for _, record := range []any{
		ptrace.NewSpan(), plog.NewLogRecord(), pprofile.NewSample(), pmetric.NewNumberDataPoint(),
		pmetric.NewHistogramDataPoint(), pmetric.NewExponentialHistogramDataPoint(), pmetric.NewSummaryDataPoint(),
	} {
		orig := reflect.ValueOf(record).FieldByName("orig")
		require.Equal(t, reflect.Pointer, orig.Kind(), "%T.orig", record)
		assert.Equal(t, orig.UnsafePointer(), reflect.ValueOf(behind(record)).UnsafePointer(), "%T", record)
		// The runtime packs smaller objects together if they hold no pointers, and lets go of them together.
		assert.GreaterOrEqual(t, orig.Type().Elem().Size(), uintptr(16), "%T", record)
	}
}

type (
	number struct{ _ int }
	Other  struct{ _ int } // not what a wrapper of another name hides
)

func TestWhatIsNotBuiltLikePdataIsNotGuessedAt(t *testing.T) {
	type Span struct{ _ int }
	type state struct{}
	for _, record := range []any{
		nil, 1, &number{},
		struct{}{},
		struct{ orig *Span }{&Span{}},
		number{},
		struct {
			state *state
			orig  *Other
		}{&state{}, &Other{}},
	} {
		assert.Nil(t, behind(record), "%T", record)
		assert.Nil(t, follow(record), "%T", record)
	}
}

func TestLastRecordIsTheOneFollowed(t *testing.T) {
	t.Run("of several scopes and resources", func(t *testing.T) {
		td := ptrace.NewTraces()
		var record ptrace.Span
		for range 3 {
			rs := td.ResourceSpans().AppendEmpty()
			for range 3 {
				spans := rs.ScopeSpans().AppendEmpty().Spans()
				spans.AppendEmpty()
				record = spans.AppendEmpty()
			}
		}
		require.True(t, any(record) == lastSpan(td))
	})
	t.Run("before scopes and resources that have none", func(t *testing.T) {
		ld := plog.NewLogs()
		scopes := ld.ResourceLogs().AppendEmpty().ScopeLogs()
		record := scopes.AppendEmpty().LogRecords().AppendEmpty()
		scopes.AppendEmpty()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
		ld.ResourceLogs().AppendEmpty()
		require.True(t, any(record) == lastLogRecord(ld))
	})
	t.Run("before metrics that have none", func(t *testing.T) {
		md := pmetric.NewMetrics()
		metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		metrics.AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
		record := metrics.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()
		metrics.AppendEmpty().SetEmptySum()
		metrics.AppendEmpty()
		require.True(t, any(record) == lastDataPoint(md))
	})
	t.Run("before profiles that have none", func(t *testing.T) {
		pd := pprofile.NewProfiles()
		profiles := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
		profiles.AppendEmpty().Samples().AppendEmpty()
		record := profiles.AppendEmpty().Samples().AppendEmpty()
		profiles.AppendEmpty()
		require.True(t, any(record) == lastSample(pd))
	})
}

func TestBatchWithoutRecordsIsNobodys(t *testing.T) {
	td, ld, md, pd := ptrace.NewTraces(), plog.NewLogs(), pmetric.NewMetrics(), pprofile.NewProfiles()
	nobodys := func() {
		assert.Nil(t, Traces(td))
		assert.Nil(t, Logs(ld))
		assert.Nil(t, Metrics(md))
		assert.Nil(t, Profiles(pd))
	}
	nobodys()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySummary()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	nobodys()

	called := 0
	(*Watch)(nil).Then(func() { called++ })
	assert.Equal(t, 1, called)
}

// TestPooledBatchesAreNobodys: the object of a pooled record outlives its batch.
func TestPooledBatchesAreNobodys(t *testing.T) {
	require.False(t, pools(), "pools nothing by default")
	gates := featuregate.GlobalRegistry()
	require.NoError(t, gates.Set("pdata.useProtoPooling", true))
	pooled = sync.OnceValue(pools)
	t.Cleanup(func() {
		require.NoError(t, gates.Set("pdata.useProtoPooling", false))
		pooled = sync.OnceValue(pools)
	})
	eachSignal(t, func(t *testing.T, s tester) { require.Nil(t, s.watchAndDrop(t)) })
}
