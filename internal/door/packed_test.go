// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/test/raw"
)

func gzipped(t *testing.T, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		_, err := w.Write(part)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.Bytes()
}

func TestPackedMessages(t *testing.T) {
	body, err := batch(1000).MarshalProto()
	require.NoError(t, err)
	good, empty := gzipped(t, body), gzipped(t, nil)
	changed := bytes.Clone(good)
	changed[len(changed)-5] ^= 1 // in the checksum
	const most = mib / 2
	for name, tt := range map[string]struct {
		packed []byte
		code   string
	}{
		"whole":                            {packed: good, code: "0"},
		"in parts":                         {packed: gzipped(t, body[:1000], body[1000:]), code: "0"},
		"with an empty part at its end":    {packed: gzipped(t, body, nil), code: "0"},
		"empty":                            {packed: empty, code: "0"},
		"truncated":                        {packed: good[:len(good)/2], code: internalError},
		"no more than the magic":           {packed: good[:2], code: internalError},
		"changed on its way":               {packed: changed, code: internalError},
		"not packed":                       {packed: body[:1000], code: internalError},
		"no protobuf":                      {packed: gzipped(t, []byte("\xff\xff\xff\xff")), code: invalidArgument},
		"as large as may be, but not OTLP": {packed: gzipped(t, make([]byte, most)), code: invalidArgument},
		"larger than may be":               {packed: gzipped(t, make([]byte, most+1)), code: resourceExhausted},
		"larger than it says":              {packed: gzipped(t, make([]byte, most), []byte{0}), code: resourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.MaxMessage = most })
			r := raw.Dial(t, s.address, "127.0.0.1")
			id := r.Open(t, raw.TracesMethod, "grpc-encoding", "gzip")
			r.Send(t, id, raw.Message(true, tt.packed), 16384, true)
			assert.Equal(t, map[string]int{tt.code: 1}, r.Await(t, 1))
			r.Close(t)
			s.closed(t)
			if tt.code == "0" && name != "empty" {
				assert.EqualValues(t, len(body), s.lease(t).request.WireSize)
				assert.EqualValues(t, 1000, s.lease(t).request.Items)
			}
		})
	}
}

// listener notes how answers are packed.
type listener struct {
	deaf
	encoding atomic.Pointer[string]
}

func (l *listener) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		l.encoding.Store(&h.Compression)
	}
}

func TestTheAnswerToAPackedRequestIsPacked(t *testing.T) {
	s, l := open(t, nil), &listener{}
	conn, err := grpc.NewClient(s.address, grpc.WithStatsHandler(l), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	for encoding, options := range map[string][]grpc.CallOption{"": nil, "gzip": {grpc.UseCompressor("gzip")}} {
		_, err = ptraceotlp.NewGRPCClient(conn).Export(t.Context(), batch(1), options...)
		require.NoError(t, err)
		require.Equal(t, encoding, *l.encoding.Load())
	}
}

func TestOtherServicesAreSentWhatWasPacked(t *testing.T) {
	s := newSite(func(c *Settings) { c.MaxMessage = 1000 })
	s.serve(t, nil, func(server *grpc.Server) { healthpb.RegisterHealthServer(server, health.NewServer()) })
	client := healthpb.NewHealthClient(s.dial(t, ""))
	for bytes, code := range map[int]codes.Code{0: codes.OK, 900: codes.NotFound, 1000: codes.Internal} {
		_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: string(make([]byte, bytes))}, grpc.UseCompressor("gzip"))
		require.Equal(t, code, status.Code(err), "%d: %v", bytes, err)
	}
	s.closed(t)
}

// packedCall is a call from an address that has brought a packed message of that size.
func (h *house) packedCall(t *testing.T, from string, size int) *call {
	c := &call{door: h.Door, connection: &connection{peer: h.wire.join(from)}, signal: "traces"}
	c.begin()
	c.arrived()
	c.hold(mem.BufferSlice{mem.SliceBuffer(gzipped(t, make([]byte, size)))})
	return c
}

// over ends the call, of which nothing is left then.
func (c *call) over() {
	c.end()
	c.peer.leave()
}

func TestAPackedMessageWaitsForRoomLikeABody(t *testing.T) {
	for name, tt := range map[string]struct {
		leave    time.Duration // when the others do
		cancel   time.Duration // when the client does
		known    string
		noPlace  bool
		reason   admission.Reason
		after    time.Duration
		panicked bool
	}{
		"until there is some":            {leave: 500 * time.Millisecond, after: 500 * time.Millisecond},
		"for no longer than it may":      {leave: time.Hour, reason: admission.MemoryContended, after: time.Second},
		"until its client leaves":        {leave: time.Hour, cancel: time.Millisecond, reason: admission.Canceled, after: time.Millisecond},
		"but for those of known tenants": {leave: time.Hour, known: "acme"},
		"and then for a heavy place":     {noPlace: true, reason: admission.QueueTimeout, after: time.Second},
		"and what panics leaves nothing": {panicked: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.MaxMessage = 4 * mib
				h.Known = func(context.Context) string { return tt.known }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.noPlace {
					h.heavy.free = 0
				}
				if tt.leave > 0 {
					h.wire.add(h.wire.limit())
					time.AfterFunc(min(tt.leave, 2*time.Second), func() { h.wire.add(-h.wire.limit()) })
				}
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				c, start := h.packedCall(t, "a", mib), time.Now()
				var lease admission.Lease
				if tt.panicked {
					h.MaxMessage = 2 * mib
					h.Memory.(*books).maxBatch = 1
					h.clerk.admit = func(context.Context, admission.Request) error { panic("broken") }
					require.Panics(t, func() { _ = h.unpack(ctx, c, &lease) })
					c.over()
					return
				}
				err := h.unpack(ctx, c, &lease)
				require.InDelta(t, tt.after, time.Since(start), float64(lookEvery))
				if tt.reason == "" {
					require.NoError(t, err)
					require.Equal(t, mib, c.body.Len())
					require.EqualValues(t, mib+1, h.bodies.large)
				} else {
					refusal, is := errors.AsType[*admission.Error](err)
					require.True(t, is, "%v", err)
					require.Equal(t, tt.reason, refusal.Reason)
				}
				c.over()
				require.Zero(t, h.spared.bytes)
				require.Empty(t, h.spared.calls)
				<-time.After(2 * time.Second)
			})
		})
	}
}

// However many are packed small, no more are unpacked at once than there is room for.
func TestPackedMessagesAreUnpackedOneAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.MaxMessage, h.QueueTimeout = 4*mib, time.Minute
		const calls = 20
		var most atomic.Int64
		var all sync.WaitGroup
		for range calls {
			c := h.packedCall(t, "a", 3*mib/2)
			all.Go(func() {
				defer c.over()
				var lease admission.Lease
				assert.NoError(t, h.unpack(t.Context(), c, &lease))
				most.Store(max(most.Load(), h.wire.total.Load()))
				<-time.After(20 * time.Millisecond)
			})
		}
		all.Wait()
		require.LessOrEqual(t, most.Load(), h.wire.limit()+2*mib, "and one of them")
	})
}
