// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/test/raw"
)

func TestWhatIsNoExportPassesAsItIs(t *testing.T) {
	s := newSite(func(c *Settings) { c.GRPCTap = false })
	s.serve(t, nil, func(server *grpc.Server) { healthpb.RegisterHealthServer(server, health.NewServer()) })
	conn := s.dial(t, "")
	s.scribe.check = func(context.Context, admission.Request) error { return pressed }
	answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, answer.Status)
	require.EqualValues(t, 1, s.codec.decoded.Load())
	require.Empty(t, s.scribe.asked)
	err = conn.Invoke(t.Context(), "/no.such.Service/Export", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	s.closed(t)
}

func TestStreamsAreLetInByTheStateOfThings(t *testing.T) {
	for name, tapped := range map[string]bool{"by the tap": true, "by the interceptor": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(func(c *Settings) { c.GRPCTap = tapped })
			s.serve(t, nil, func(server *grpc.Server) { healthpb.RegisterHealthServer(server, health.NewServer()) })
			var refuse atomic.Bool
			s.scribe.check = func(context.Context, admission.Request) error {
				if refuse.Load() {
					return pressed
				}
				return nil
			}
			health := healthpb.NewHealthClient(s.dial(t, ""))
			ctx, cancel := context.WithCancel(t.Context())
			watch, err := health.Watch(ctx, &healthpb.HealthCheckRequest{})
			require.NoError(t, err)
			_, err = watch.Recv()
			require.NoError(t, err)

			refuse.Store(true)
			refusedWatch, err := health.Watch(ctx, &healthpb.HealthCheckRequest{})
			require.NoError(t, err)
			_, err = refusedWatch.Recv()
			info, _ := refused(t, err, codes.Unavailable)
			require.Equal(t, "memory_pressure", info.Reason)
			require.Empty(t, s.scribe.asked)
			cancel()
			s.closed(t)
		})
	}
}

func TestMoreStreamsThanAConnectionMayHave(t *testing.T) {
	s := open(t, func(c *Settings) { c.MaxStreams = 3 })
	r := raw.Dial(t, s.address, "127.0.0.1")
	for range 5 {
		r.Send(t, r.Open(t, raw.TracesMethod), raw.Announced(mib), 5, false)
	}
	r.Heard(t)
	require.EqualValues(t, 3*perCall, s.Stats().Wire)
	r.Close(t)
	s.closed(t)
}
