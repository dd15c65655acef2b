// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"runtime"
	"sync"
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

// scribe is a governor that writes down what it is asked, and lets everything in unless told otherwise.
type scribe struct {
	check    func(context.Context, admission.Request) error
	admit    func(context.Context, admission.Request) error
	identify func(context.Context) string

	held  atomic.Int64 // leases
	mu    sync.Mutex
	asked []admission.Request
	ended []*written
}

// written is a lease of a scribe.
type written struct {
	admission.Lease
	scribe  *scribe
	request admission.Request
	ended   atomic.Bool
	outcome error
}

func (s *scribe) Register(admission.Limits) (admission.Ceilings, bool, error) { panic("not a door's") }

func (s *scribe) Identify(ctx context.Context) (string, bool) {
	if s.identify == nil {
		return "default", false
	}
	return s.identify(ctx), true
}

func (s *scribe) Check(ctx context.Context, r admission.Request) error {
	if s.check == nil {
		return nil
	}
	return s.check(ctx, r)
}

func (s *scribe) Admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	if s.admit != nil {
		if err := s.admit(ctx, r); err != nil {
			return nil, err
		}
	}
	s.held.Add(1)
	return &written{scribe: s, request: r}, nil
}

func (w *written) Refuse(_ context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
	return &admission.Error{Reason: reason, Observed: observed, Limit: limit}
}

func (w *written) Release(outcome error) {
	if !w.ended.CompareAndSwap(false, true) {
		return
	}
	w.outcome = outcome
	w.scribe.mu.Lock()
	w.scribe.ended = append(w.scribe.ended, w)
	w.scribe.mu.Unlock()
	w.scribe.held.Add(-1)
}

// purse is the memory that a door pays from.
type purse struct {
	size, maxBatch int64
	owed, most     atomic.Int64
	clear          chan struct{} // filled whenever nothing is owed any more
}

func (p *purse) Size() int64     { return p.size }
func (p *purse) MaxBatch() int64 { return p.maxBatch }

func (p *purse) Owe(bytes int64) {
	owed := p.owed.Add(bytes)
	for most := p.most.Load(); owed > most && !p.most.CompareAndSwap(most, owed); most = p.most.Load() {
	}
	if owed == 0 {
		select {
		case p.clear <- struct{}{}:
		default:
		}
	}
}

// settle returns once nothing is owed any more. What is garbage is collected for that, once.
func (p *purse) settle(t *testing.T) {
	t.Helper()
	select { // what an earlier moment left
	case <-p.clear:
	default:
	}
	if p.owed.Load() == 0 {
		return
	}
	runtime.GC()
	for p.owed.Load() != 0 {
		select {
		case <-p.clear:
		case <-time.After(time.Minute):
			t.Fatalf("%d bytes are owed that nobody has", p.owed.Load())
		}
	}
}

func newPurse(size, maxBatch int64) *purse {
	return &purse{size: size, maxBatch: maxBatch, clear: make(chan struct{}, 1)}
}

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
	scribe   *scribe
	purse    *purse
	codec    *counting
	log      *observer.ObservedLogs
	address  string
	server   *grpc.Server
	critical atomic.Bool
	refused  atomic.Int64 // by the door itself
	handle   func(context.Context) error
	left     chan struct{} // filled by the end of a connection
	begins   chan struct{} // filled by the begin of a call
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
		Critical: s.critical.Load, GRPCTap: true, QueueTimeout: time.Minute,
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
