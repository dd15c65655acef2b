// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
)

// batch is a request of so many spans of eight attributes, as instrumented services send them: some 340 bytes
// each.
func batch(spans int) ptraceotlp.ExportRequest {
	td := ptrace.NewTraces()
	resource := td.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "checkout")
	scope := resource.ScopeSpans().AppendEmpty()
	for i := range spans {
		span := scope.Spans().AppendEmpty()
		span.SetName("GET /api/v1/orders/{id}")
		span.SetTraceID([16]byte{1, byte(i), byte(i >> 8)})
		span.SetSpanID([8]byte{2, byte(i), byte(i >> 8)})
		span.SetStartTimestamp(1_700_000_000_000_000_000)
		span.SetEndTimestamp(1_700_000_000_001_000_000)
		for a := range 8 {
			span.Attributes().PutStr("http.request.header."+strconv.Itoa(a), "value-"+strconv.Itoa(i*8+a))
		}
	}
	return ptraceotlp.NewExportRequestFromTraces(td)
}

type deaf struct{}

func (deaf) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (deaf) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (deaf) HandleRPC(context.Context, stats.RPCStats)                         {}
func (deaf) HandleConn(context.Context, stats.ConnStats)                       {}

func through(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return next(ctx, request)
}

// BenchmarkExport is a call over loopback, with the door and without.
func BenchmarkExport(b *testing.B) {
	for _, spans := range []int{1, 100, 1000} {
		for _, door := range []bool{false, true} {
			b.Run(strconv.Itoa(spans)+"_spans/door="+strconv.FormatBool(door), func(b *testing.B) {
				s := newSite(func(c *Settings) { c.Ease = func(context.Context) Ease { return Ease{Worst: 8 * mib} } }) // as of 512 MiB that are free
				// As configgrpc has it: a stats handler and an interceptor there are always.
				options := []grpc.ServerOption{grpc.StatsHandler(deaf{}), grpc.ChainUnaryInterceptor(through)}
				if door {
					options = append(options, s.GRPCServerOptions()...)
				}
				server := grpc.NewServer(options...)
				registerAll(server, s)
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(b, err)
				go func() { _ = server.Serve(listener) }()
				defer server.Stop()
				conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
				require.NoError(b, err)
				defer conn.Close()
				client, request := ptraceotlp.NewGRPCClient(conn), batch(spans)
				b.ReportAllocs()
				var before, after syscall.Rusage
				syscall.Getrusage(0, &before)
				defer func() {
					syscall.Getrusage(0, &after)
					cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
					b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
				}()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := client.Export(context.Background(), request); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
