// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/test/raw"
)

// raceDetector says that memory is not what it is in production.
var raceDetector bool

// abuses are those that this server has handlers for, beside the usual ones.
var abuses = map[string]raw.Abuse{
	"failed authentication": func(t *testing.T, r *raw.Client, body []byte) {
		r.Send(t, r.Open(t, raw.TracesMethod, "who", "nobody"), raw.Message(false, body), 16384, true)
	},
	"a handler that panics": func(t *testing.T, r *raw.Client, body []byte) {
		r.Send(t, r.Open(t, raw.TracesMethod, "what", "panic"), raw.Message(false, body), 16384, true)
	},
}

// Whatever clients do, nothing is held once they are through: leases and places at once, bytes once what is garbage
// has been collected. Between all of it good calls are served.
func TestNothingIsLostToBadClients(t *testing.T) {
	authenticate := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if len(metadata.ValueFromIncomingContext(ctx, "who")) > 0 {
			return nil, status.Error(codes.Unauthenticated, "who are you?")
		}
		return next(ctx, request)
	}
	each := abusesOfEach
	if raceDetector { // which makes each take ten times as long
		each /= 10
	}
	for name, tapped := range map[string]bool{"with a tap": true, "without a tap": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(func(c *Settings) { c.GRPCTap = tapped })
			s.purse.size = 1 << 40 // nobody is refused here
			s.handle = func(ctx context.Context) error {
				if len(metadata.ValueFromIncomingContext(ctx, "what")) > 0 {
					panic("broken")
				}
				return nil
			}
			s.serve(t, []grpc.ServerOption{grpc.ChainUnaryInterceptor(authenticate)}, func(*grpc.Server) {})
			body, err := batch(10).MarshalProto() // 3 KiB
			require.NoError(t, err)

			mixed := maps.Clone(raw.Abuses)
			maps.Copy(mixed, abuses)
			var all sync.WaitGroup
			for name, abuse := range mixed {
				all.Go(func() {
					for left := each; left > 0; left -= 100 {
						r := raw.Dial(t, s.address, "127.0.0.1")
						for range min(left, 100) {
							abuse(t, r, body)
						}
						r.Heard(t)
						r.Close(t)
					}
				})
				all.Go(func() {
					client, request := ptraceotlp.NewGRPCClient(s.dial(t, "")), batch(10)
					var options []grpc.CallOption
					if len(name)%2 == 0 {
						options = append(options, grpc.UseCompressor("gzip"))
					}
					for range each / 5 {
						_, err := client.Export(t.Context(), request, options...)
						assert.NoError(t, err)
					}
				})
			}
			all.Wait()
			s.closed(t)
		})
	}
}

// What came of messages that were refused unread is given back even where Go has collected nothing before, so that
// grpc's pools are full of what points at them.
func TestWhatNobodyReadIsGivenBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s := newSite(nil)
	s.purse.size = 1 << 40
	s.serve(t, nil, func(*grpc.Server) {})
	body, err := batch(10).MarshalProto()
	require.NoError(t, err)
	for range 20 {
		r := raw.Dial(t, s.address, "127.0.0.1")
		for range 300 {
			raw.Abuses["a message over the receiver's limit"](t, r, body)
		}
		r.Heard(t)
		r.Close(t)
	}
	s.closed(t)
}

// Streams that announce large messages and stall hold what they are charged for, and no neighbour feels them.
func TestAnnouncedAndNotSent(t *testing.T) {
	s := open(t, nil)
	r := raw.Dial(t, s.address, "127.0.0.1")
	before := inUse()
	const streams = 500
	for range streams {
		r.Send(t, r.Open(t, raw.TracesMethod), raw.Announced(16*mib), 5, false)
	}
	r.Heard(t)
	let := 6 * mib / perCall // into what one address may fill
	<-s.begun(let)
	require.Equal(t, map[string]int{unavailable: streams - let}, r.Await(t, streams-let))
	require.EqualValues(t, let*perCall, s.Stats().Wire)
	if !raceDetector {
		require.Less(t, inUse()-before, s.Stats().Wire, "what they take is charged")
	}
	neighbour := ptraceotlp.NewGRPCClient(s.dial(t, "127.0.0.2"))
	for range 100 {
		_, err := neighbour.Export(t.Context(), batch(30))
		require.NoError(t, err)
	}
	r.Close(t)
	s.closed(t)
}

// What grpc keeps of calls that the tap refused is what is charged for it.
func TestWhatIsKeptOfRefusedCalls(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes everything larger")
	}
	s := newSite(nil)
	s.purse.size = 1 << 40
	s.scribe.check = func(context.Context, admission.Request) error { return pressed }
	s.serve(t, nil, func(*grpc.Server) {})
	r := raw.Dial(t, s.address, "127.0.0.1")
	before := inUse()
	const calls = 5000
	for range calls {
		r.Open(t, raw.TracesMethod, "grpc-timeout", "1H")
	}
	r.Await(t, calls)
	r.Heard(t)
	kept := float64(inUse()-before) / calls
	require.Less(t, kept, float64(leftover))
	require.Greater(t, kept, float64(leftover)/2)
	require.EqualValues(t, calls*leftover, s.Stats().Wire)
	r.Close(t)
}

// inUse is the memory of what is alive, and of goroutines.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied in two steps
	in := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(in)
	return int64(in[0].Value.Uint64() + in[1].Value.Uint64())
}
