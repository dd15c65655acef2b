// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/test/raw"
)

var pressed = &admission.Error{Reason: admission.MemoryPressure, Observed: 3, Limit: 2, RetryAfter: 2 * time.Second}

func TestTheTapRefusesByStateAlone(t *testing.T) {
	for name, byHeader := range map[string]bool{"of a tenant": true, "of nobody in particular": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(func(c *Settings) { c.TenantByHeader = byHeader })
			s.scribe.check = func(ctx context.Context, r admission.Request) error {
				assert.Equal(t, "traces", r.Signal)
				from := client.FromContext(ctx)
				if byHeader {
					assert.Equal(t, []string{"acme"}, from.Metadata.Get("X-Scope-OrgID"))
					assert.Equal(t, "10.0.0.1:4711", from.Addr.String())
				} else {
					assert.Equal(t, client.Info{}, from)
				}
				return pressed
			}
			conn := &connection{remote: &net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 4711}, peer: s.wire.join("10.0.0.1")}
			ctx := context.WithValue(t.Context(), connectionKey{}, conn)
			_, err := s.tap(ctx, &tap.Info{
				FullMethodName: raw.TracesMethod, Header: metadata.MD{"x-scope-orgid": {"acme"}},
			})
			require.Same(t, pressed, err)
		})
	}
}

func TestARefusalByTheTapSaysWhyAndWhenToComeBack(t *testing.T) {
	s := open(t, nil)
	s.scribe.check = func(context.Context, admission.Request) error { return pressed }
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(ctx, batch(1))
	info, retry := refused(t, err, codes.Unavailable)
	require.Equal(t, "memory_pressure", info.Reason)
	require.Equal(t, map[string]string{"observed": "3", "limit": "2", "unit": "By"}, info.Metadata)
	require.Equal(t, 2*time.Second, retry.RetryDelay.AsDuration())
	require.Zero(t, s.Stats().Wire-leftover, "it came no further than its headers")
	cancel()
}

func TestConnectionsOverTheLimit(t *testing.T) {
	for name, tapped := range map[string]bool{"by the tap": true, "by the interceptor": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.MaxConnections = 1; c.GRPCTap = tapped })
			first := raw.Dial(t, s.address, "127.0.0.1")
			first.Heard(t)
			second := ptraceotlp.NewGRPCClient(s.dial(t, ""))
			_, err := second.Export(t.Context(), batch(1))
			info, retry := refused(t, err, codes.Unavailable)
			require.Equal(t, "connections", info.Reason)
			require.Equal(t, map[string]string{"observed": "2", "limit": "1", "unit": "{connection}"}, info.Metadata)
			require.NotNil(t, retry)
			require.Equal(t, int64(2), s.Stats().Connections)

			body, err := batch(1).MarshalProto()
			require.NoError(t, err)
			first.Send(t, first.Open(t, raw.TracesMethod), raw.Message(false, body), 16384, true)
			require.Equal(t, map[string]int{"0": 1}, first.Await(t, 1), "those that were there go on")
			first.Close(t)
			<-s.left
			_, err = second.Export(t.Context(), batch(1))
			require.NoError(t, err, "there is room now")
		})
	}
}

func TestWhatIsObservedIsLetIn(t *testing.T) {
	told := make(chan admission.Reason, 1)
	s := open(t, func(c *Settings) {
		c.MaxConnections, c.Observe = 1, true
		c.Refuse = func(_ context.Context, _ string, reason admission.Reason, _, _ int64) *admission.Error {
			told <- reason
			return &admission.Error{Reason: reason}
		}
	})
	first := raw.Dial(t, s.address, "127.0.0.1")
	first.Heard(t)
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(1))
	require.NoError(t, err)
	require.Equal(t, admission.Connections, <-told)
}

// A sender that fills what it may have shuts out nobody but itself.
func TestAnAddressThatFillsTheWireLeavesRoomForOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs more than one loopback address")
	}
	for name, tapped := range map[string]bool{"by the tap": true, "by the interceptor": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.GRPCTap = tapped })
			greedy := raw.Dial(t, s.address, "127.0.0.1")
			for range 6 * mib / perCall {
				greedy.Send(t, greedy.Open(t, raw.TracesMethod), raw.Announced(mib), 100, false)
			}
			greedy.Heard(t)
			<-s.begun(6 * mib / perCall)

			_, err := ptraceotlp.NewGRPCClient(s.dial(t, "127.0.0.1")).Export(t.Context(), batch(1))
			info, retry := refused(t, err, codes.Unavailable)
			require.Equal(t, "memory_contended", info.Reason)
			require.NotNil(t, retry)
			neighbour := ptraceotlp.NewGRPCClient(s.dial(t, "127.0.0.2"))
			for range 20 {
				_, err = neighbour.Export(t.Context(), batch(100))
				require.NoError(t, err)
			}
			greedy.Close(t)
			s.closed(t)
		})
	}
}

func TestWhatGRPCKeepsOfRefusedCallsIsPaidUntilTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(nil)
		most := int(s.purse.size / leftoverShare / leftover)
		var cancels []context.CancelFunc
		for i := range most {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
			cancels = append(cancels, cancel)
			require.True(t, s.mayLeave(ctx, "10.0.0.1"))
		}
		require.EqualValues(t, most*leftover, s.Stats().Wire)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, s.mayLeave(ctx, "10.0.0.1"), "enough is left lying about")
		require.True(t, s.mayLeave(t.Context(), "10.0.0.1"), "nothing is kept of a call without a deadline")

		<-time.After(time.Second)
		synctest.Wait()
		require.EqualValues(t, (most-1)*leftover, s.Stats().Wire)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.True(t, s.mayLeave(ctx, "10.0.0.1"), "the first has come to its deadline")
		<-time.After(time.Duration(most) * time.Second)
		synctest.Wait()
		require.Zero(t, s.Stats().Wire)
		require.Zero(t, s.leftovers.Load())
		require.Empty(t, s.wire.mu.peers)
		for _, cancel := range cancels {
			cancel()
		}
	})
}

func TestRefusedByTheInterceptorWhereTheTapHasLeftEnough(t *testing.T) {
	s := open(t, nil)
	s.leftovers.Store(s.purse.size)
	s.scribe.check = func(context.Context, admission.Request) error { return pressed }
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(ctx, batch(1))
	info, retry := refused(t, err, codes.Unavailable)
	require.Equal(t, "memory_pressure", info.Reason)
	require.NotNil(t, retry)
	require.Zero(t, s.codec.decoded.Load())
	require.Empty(t, s.scribe.asked)
	s.closed(t)
}

// What comes in small frames is not seen until the message is whole.
func TestUnderPressureWhatIsHalfHereIsShed(t *testing.T) {
	s := open(t, nil)
	half := raw.Dial(t, s.address, "127.0.0.1")
	for range 10 {
		id := half.Open(t, raw.TracesMethod)
		half.Send(t, id, raw.Announced(mib), 100, false)
		half.Send(t, id, make([]byte, 20_000), 1000, false)
	}
	half.Heard(t)
	<-s.begun(10)
	s.Shed()
	half.Heard(t)
	require.Empty(t, half.Await(t, 0), "the governor had nothing against them")

	s.scribe.check = func(context.Context, admission.Request) error { return pressed }
	s.Shed()
	require.Equal(t, map[string]int{canceled: 10}, half.Await(t, 10))
	half.Close(t)
	s.closed(t)
}
