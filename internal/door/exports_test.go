// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/internal/footprint"
)

// exports are one small request of each signal: how it is sent, its bytes, and the heap and items that it is.
func exports(t *testing.T) map[string]struct {
	send                func(context.Context, *grpc.ClientConn) error
	wire, memory, items int64
} {
	t.Helper()
	type export = struct {
		send                func(context.Context, *grpc.ClientConn) error
		wire, memory, items int64
	}
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("span")
	md := pmetric.NewMetrics()
	gauge := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge()
	gauge.DataPoints().AppendEmpty().SetIntValue(1)
	gauge.DataPoints().AppendEmpty().SetIntValue(2)
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 3 {
		records.AppendEmpty().Body().SetStr("line")
	}
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	encoded, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	require.NoError(t, err)
	decoded := pprofileotlp.NewExportRequest() // which makes messages that the original does without
	require.NoError(t, decoded.UnmarshalProto(encoded))

	all := map[string]export{}
	add := func(signal string, memory, items int64, request interface{ MarshalProto() ([]byte, error) },
		send func(context.Context, *grpc.ClientConn) error,
	) {
		body, err := request.MarshalProto()
		require.NoError(t, err)
		all[signal] = export{send: send, wire: int64(len(body)), memory: memory, items: items}
	}
	traces := ptraceotlp.NewExportRequestFromTraces(td)
	add("traces", footprint.Traces(td), 1, traces, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := ptraceotlp.NewGRPCClient(conn).Export(ctx, traces)
		return err
	})
	metrics := pmetricotlp.NewExportRequestFromMetrics(md)
	add("metrics", footprint.Metrics(md), 2, metrics, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, metrics)
		return err
	})
	logs := plogotlp.NewExportRequestFromLogs(ld)
	add("logs", footprint.Logs(ld), 3, logs, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := plogotlp.NewGRPCClient(conn).Export(ctx, logs)
		return err
	})
	profiles := pprofileotlp.NewExportRequestFromProfiles(pd)
	add("profiles", footprint.Profiles(decoded.Profiles()), 1, profiles, func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pprofileotlp.NewGRPCClient(conn).Export(ctx, profiles)
		return err
	})
	return all
}

// closed waits for the end of all calls and then requires that nothing is held: leases and places at once, bytes
// once what is garbage has been collected.
func (s *site) closed(t *testing.T) {
	t.Helper()
	s.server.GracefulStop()
	require.Zero(t, s.scribe.held.Load(), "leases")
	require.Empty(t, s.heavy.queues)
	require.Empty(t, s.kept.messages)
	require.Zero(t, s.connections.Load())
	s.purse.settle(t)
	require.Zero(t, s.Stats().Wire)
	require.Zero(t, s.wire.claimed.Load())
	require.Empty(t, s.arriving.calls)
	require.Empty(t, s.wire.mu.peers)
	require.Zero(t, s.wire.mu.active)
	require.Zero(t, s.wire.mu.coming)
}

// lease returns the only lease that there was.
func (s *site) lease(t *testing.T) *written {
	t.Helper()
	s.scribe.mu.Lock()
	defer s.scribe.mu.Unlock()
	require.Len(t, s.scribe.ended, 1)
	return s.scribe.ended[0]
}

// refused returns the details of a refusal as a client sees it.
func refused(t *testing.T, err error, code codes.Code) (*errdetails.ErrorInfo, *errdetails.RetryInfo) {
	t.Helper()
	s, ok := status.FromError(err)
	require.True(t, ok)
	require.Equal(t, code, s.Code(), s.Message())
	var info *errdetails.ErrorInfo
	var retry *errdetails.RetryInfo
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	require.NotNil(t, info, "%v", err)
	return info, retry
}
