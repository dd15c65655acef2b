// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"google.golang.org/grpc/encoding"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/test/raw"
)

func init() { encoding.RegisterCompressor(upper{}) }

// upper is an encoding that only grpc knows: its messages are in capital letters.
type upper struct{}

func (upper) Name() string { return "upper" }

func (upper) Compress(w io.Writer) (io.WriteCloser, error) { return whole{w}, nil }

type whole struct{ io.Writer }

func (whole) Close() error { return nil }

func (upper) Decompress(r io.Reader) (io.Reader, error) {
	b, err := io.ReadAll(r)
	return strings.NewReader(strings.ToLower(string(b))), err
}

// A door whose pool lets 10 MiB be on their way in, 7.5 from one address.
func TestWhatGRPCUnpacksCountsForWhatItMayBecome(t *testing.T) {
	const sent = 10
	for name, tt := range map[string]struct {
		known string
		in    int
	}{
		"of nobody in particular": {in: 2},
		"of a tenant":             {known: "acme", in: 2 + spareCalls},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.Known = func(context.Context) string { return tt.known } })
			s.purse.size = 80 * mib
			r := raw.Dial(t, s.address, "127.0.0.1")
			for range sent {
				r.Send(t, r.Open(t, raw.TracesMethod, "grpc-encoding", "upper"), raw.Announced(10), 5, false)
			}
			before := r.Await(t, sent-tt.in)
			require.Equal(t, sent-tt.in, before[canceled]+before[unavailable], "%v", before)
			require.EqualValues(t, sent-tt.in, s.refused.Load(), "all of them are counted")

			r.Send(t, r.Open(t, raw.TracesMethod, "grpc-encoding", "upper"), raw.Announced(10), 5, false)
			require.Equal(t, before[unavailable]+1, r.Await(t, sent-tt.in+1)[unavailable], "now the tap knows")
			r.Close(t)
			s.closed(t)
			require.Zero(t, s.spared.bytes)
			require.True(t, s.ended.TryLock())
		})
	}
}

func TestWhatGRPCUnpacksCountsForThatNoLongerThanItTakes(t *testing.T) {
	s := open(t, nil)
	s.scribe.admit = func(context.Context, admission.Request) error {
		if s.Stats().Wire > 2*perCall {
			return pressed
		}
		return nil
	}
	r := raw.Dial(t, s.address, "127.0.0.1")
	for i, encoding := range []string{"upper", "upper", "identity", "gzip", "upper"} {
		id := r.Open(t, raw.TracesMethod, "grpc-encoding", encoding)
		r.Send(t, id, raw.Message(encoding == "upper", nil), 16384, true)
		require.Equal(t, map[string]int{"0": i + 1}, r.Await(t, i+1))
	}
	r.Close(t)
	s.closed(t)
}

// Without a tap nobody can end a call, and the interceptor says why.
func TestWhatGRPCUnpacksWithoutATap(t *testing.T) {
	s := open(t, func(c *Settings) { c.GRPCTap = false })
	first := raw.Dial(t, s.address, "127.0.0.1")
	for range 2 {
		first.Send(t, first.Open(t, raw.TracesMethod, "grpc-encoding", "upper"), raw.Announced(10), 5, false)
	}
	first.Heard(t)
	<-s.begun(2)
	first.Send(t, first.Open(t, raw.TracesMethod, "grpc-encoding", "upper"), raw.Message(true, nil), 16384, true)
	require.Equal(t, map[string]int{unavailable: 1}, first.Await(t, 1))
	first.Close(t)
	s.closed(t)
}

// flood opens calls of an address that was known for small messages. They announce more, and send it once others have
// brought so many bytes.
func flood(t *testing.T, s *site, from string, calls int, others int64) *raw.Client {
	r := raw.Dial(t, s.address, from)
	r.Heard(t)
	s.wire.mu.Lock()
	s.wire.mu.peers[from].typical = 1
	s.wire.mu.Unlock()
	ids := make([]uint32, calls)
	for i := range ids {
		ids[i] = r.Open(t, raw.TracesMethod)
		r.Send(t, ids[i], raw.Announced(mib), 5, false)
	}
	r.Heard(t)
	<-s.begun(calls)
	s.wire.add(others)
	for _, id := range ids {
		r.Send(t, id, make([]byte, 60_000), 15_000, false)
	}
	return r
}

func TestAFloodOfWhatLookedSmallIsStemmed(t *testing.T) {
	s := open(t, func(c *Settings) {
		c.TenantByHeader = true
		c.Known = func(ctx context.Context) string {
			if name := client.FromContext(ctx).Metadata.Get("who"); len(name) > 0 {
				return name[0]
			}
			return ""
		}
	})
	neighbor := raw.Dial(t, s.address, "127.0.0.2")
	id := neighbor.Open(t, raw.TracesMethod)
	neighbor.Send(t, id, raw.Message(false, make([]byte, 9))[:7], 16384, false)
	neighbor.Heard(t)
	<-s.begun(1)
	beside := raw.Dial(t, s.address, "127.0.0.1", "who", "acme")
	for range spareCalls {
		beside.Send(t, beside.Open(t, raw.TracesMethod), raw.Announced(mib), 5, false)
	}
	beside.Heard(t)
	<-s.begun(spareCalls)

	const calls = 120 // a quarter of 8 MiB, and 7 MB
	r := flood(t, s, "127.0.0.1", calls, 26*mib)
	require.Equal(t, map[string]int{canceled: calls}, r.Await(t, calls))
	require.Empty(t, beside.Await(t, 0), "a few of a known tenant stay")
	require.Empty(t, neighbor.Await(t, 0))
	s.wire.mu.Lock()
	require.EqualValues(t, 2*mib, s.wire.mu.peers["127.0.0.1"].typical, "and it is no longer known for small ones")
	s.wire.mu.Unlock()
	for _, c := range []*raw.Client{r, beside, neighbor} {
		c.Close(t)
	}
	s.wire.add(-26 * mib)
	s.server.GracefulStop()
	runtime.GC() // what is held by pools goes with the second one
	s.closed(t)
}

// TestTheFirstOfAFloodGetsThrough has an address that is the only one: whatever its size, one message comes in.
func TestTheFirstOfAFloodGetsThrough(t *testing.T) {
	s := open(t, func(*Settings) {})
	const calls = 20
	r := flood(t, s, "127.0.0.1", calls, 33*mib)
	require.Equal(t, map[string]int{canceled: calls - 1}, r.Await(t, calls-1))
	s.arriving.mu.Lock()
	require.Len(t, s.arriving.calls, 1)
	for c := range s.arriving.calls {
		require.EqualValues(t, 1, c.order)
	}
	s.arriving.mu.Unlock()
	r.Close(t)
	s.wire.add(-33 * mib)
	s.server.GracefulStop()
	runtime.GC()
	s.closed(t)
}

func TestAFloodIsOnlyObserved(t *testing.T) {
	s := open(t, func(c *Settings) { c.Observe = true })
	r := flood(t, s, "127.0.0.1", 10, 36*mib)
	r.Heard(t)
	require.Empty(t, r.Await(t, 0))
	r.Close(t)
	s.wire.add(-36 * mib)
	s.server.GracefulStop()
	runtime.GC()
	s.closed(t)
}
