// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"

	"github.com/otel-governor/otel-governor/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting counts what is decoded.
type counting struct {
	encoding.CodecV2
	decoded atomic.Int64
}

func (c *counting) Unmarshal(data mem.BufferSlice, v any) error {
	c.decoded.Add(1)
	return c.CodecV2.Unmarshal(data, v)
}

// site is a server of OTLP behind a door, on a loopback address.
type site struct {
	*Door
	scribe  *scribe
	purse   *purse
	codec   *counting
	log     *observer.ObservedLogs
	address string
	server  *grpc.Server
	refused atomic.Int64 // by the door itself
	handle  func(context.Context) error
	left    chan struct{} // filled by the end of a connection
	begins  chan struct{} // filled by the begin of a call
}

// begun returns what is closed once so many calls have begun.
func (s *site) begun(calls int) <-chan struct{} {
	all := make(chan struct{})
	go func() {
		defer close(all)
		for range calls {
			<-s.begins
		}
	}()
	return all
}

// HandleRPC and what follows make the site a stats handler that comes after the door's.
func (s *site) HandleRPC(_ context.Context, rpc stats.RPCStats) {
	if _, ok := rpc.(*stats.Begin); ok {
		select {
		case s.begins <- struct{}{}:
		default:
		}
	}
}

func (s *site) HandleConn(_ context.Context, conn stats.ConnStats) {
	if _, ok := conn.(*stats.ConnEnd); ok {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
}

func (s *site) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (s *site) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// newSite returns a door with all that it needs: a pool of 64 MiB, of which 8 may be on their way in and 32 in
// one batch.
func newSite(change func(*Settings)) *site {
	core, log := observer.New(zapcore.DebugLevel)
	s := &site{
		scribe: &scribe{}, purse: newPurse(64*mib, 32*mib), log: log,
		codec:  &counting{CodecV2: encoding.GetCodecV2("proto")},
		handle: func(context.Context) error { return nil },
		left:   make(chan struct{}, 1000), begins: make(chan struct{}, 1000),
	}
	settings := Settings{
		Governor: s.scribe, Logger: zap.New(core), Memory: s.purse,
		GRPCTap: true, QueueTimeout: time.Minute, MaxMessage: 64 * mib,
		Refuse: func(_ context.Context, _ string, reason admission.Reason, observed, limit int64) *admission.Error {
			s.refused.Add(1)
			return &admission.Error{Reason: reason, Observed: observed, Limit: limit, RetryAfter: time.Second}
		},
	}
	if change != nil {
		change(&settings)
	}
	s.Door = New(settings)
	s.protobuf = s.codec
	return s
}

// open starts a site. The options come before the door's, as a receiver's own do.
func open(t *testing.T, change func(*Settings), options ...grpc.ServerOption) *site {
	s := newSite(change)
	s.serve(t, options, func(*grpc.Server) {})
	return s
}

// serve starts it, with further services.
func (s *site) serve(t *testing.T, options []grpc.ServerOption, register func(*grpc.Server)) {
	options = append([]grpc.ServerOption{grpc.MaxRecvMsgSize(64 * mib)}, options...)
	options = append(append(options, s.GRPCServerOptions()...), grpc.StatsHandler(s))
	s.server = grpc.NewServer(options...)
	registerAll(s.server, s)
	register(s.server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = listener.Addr().String()
	served := make(chan error)
	go func() { served <- s.server.Serve(listener) }()
	t.Cleanup(func() {
		s.server.Stop()
		require.NoError(t, <-served)
	})
}

// registerAll makes the site what answers on a server.
func registerAll(server *grpc.Server, s *site) {
	ptraceotlp.RegisterGRPCServer(server, &tracesServer{site: s})
	pmetricotlp.RegisterGRPCServer(server, &metricsServer{site: s})
	plogotlp.RegisterGRPCServer(server, &logsServer{site: s})
	pprofileotlp.RegisterGRPCServer(server, &profilesServer{site: s})
}

type (
	tracesServer struct {
		*site
		ptraceotlp.UnimplementedGRPCServer
	}
	metricsServer struct {
		*site
		pmetricotlp.UnimplementedGRPCServer
	}
	logsServer struct {
		*site
		plogotlp.UnimplementedGRPCServer
	}
	profilesServer struct {
		*site
		pprofileotlp.UnimplementedGRPCServer
	}
)

func (s *tracesServer) Export(ctx context.Context, _ ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), s.handle(ctx)
}

func (s *metricsServer) Export(ctx context.Context, _ pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), s.handle(ctx)
}

func (s *logsServer) Export(ctx context.Context, _ plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), s.handle(ctx)
}

func (s *profilesServer) Export(ctx context.Context, _ pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), s.handle(ctx)
}

// dial connects to the site, from a loopback address of its own if one is given.
func (s *site) dial(t *testing.T, from string) *grpc.ClientConn {
	dialer := &net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := grpc.NewClient("passthrough:"+s.address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}
