// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
	"github.com/otel-governor/otel-governor/test/raw"
)

func TestEverySignalIsWeighedAdmittedAndOnlyThenDecoded(t *testing.T) {
	for signal, export := range exports(t) {
		for _, tap := range []bool{true, false} {
			t.Run(signal, func(t *testing.T) {
				s := open(t, func(c *Settings) { c.GRPCTap = tap })
				s.scribe.admit = func(context.Context, admission.Request) error {
					assert.Zero(t, s.codec.decoded.Load(), "decoded before it was admitted")
					assert.Positive(t, s.Stats().Wire)
					return nil
				}
				s.handle = func(ctx context.Context) error {
					assert.EqualValues(t, 1, s.scribe.held.Load())
					assert.NotNil(t, admission.LeaseFromContext(ctx))
					assert.EqualValues(t, 1, s.codec.decoded.Load())
					assert.Zero(t, s.Stats().Wire, "the bytes are given back once they are decoded")
					return nil
				}
				require.NoError(t, export.send(t.Context(), s.dial(t, "")))
				s.closed(t)
				require.Equal(t, admission.Request{
					Share:  admission.Share{Memory: export.memory, WireSize: export.wire, Items: export.items},
					Signal: signal, Provisional: true,
				}, s.lease(t).request)
				require.NoError(t, s.lease(t).outcome)
			})
		}
	}
}

func TestARefusedRequestIsNotDecoded(t *testing.T) {
	s := open(t, nil)
	s.scribe.admit = func(_ context.Context, r admission.Request) error {
		return &admission.Error{Reason: admission.BatchMemory, Observed: r.Memory, Limit: 7}
	}
	for _, export := range exports(t) {
		info, retry := refused(t, export.send(t.Context(), s.dial(t, "")), codes.InvalidArgument)
		require.Equal(t, "batch_memory", info.Reason)
		require.Equal(t, "7", info.Metadata["limit"])
		require.Nil(t, retry)
	}
	require.Zero(t, s.codec.decoded.Load())
	s.closed(t)
}

func TestWhatEasilyFitsIsNotWeighed(t *testing.T) {
	body, err := batch(10).MarshalProto()
	require.NoError(t, err)
	worst := footprint.WorstCase(footprint.TracesRequest, len(body))
	for name, easy := range map[string]int64{"just": worst, "not quite": worst - 1} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.Ease = func(context.Context) Ease { return Ease{Worst: easy} } })
			_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(10))
			require.NoError(t, err)
			s.closed(t)
			want := admission.Share{Memory: footprint.Traces(batch(10).Traces()), WireSize: int64(len(body)), Items: 10}
			if easy == worst {
				want = admission.Share{Memory: worst, WireSize: int64(len(body))}
			}
			require.Equal(t, want, s.lease(t).request.Share)
			require.True(t, s.lease(t).request.Provisional)
		})
	}
}

// What may be admitted may become more while a request is weighed.
func TestWhatIsWeighedInPartIsNotLetInOnceMoreMayBe(t *testing.T) {
	heap := footprint.Traces(batch(10_000).Traces())
	s := open(t, nil)
	s.purse.maxBatch = heap * 2 / 5
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(10_000))
	require.NoError(t, err, "the scribe lets everything in")
	s.closed(t)
	require.Greater(t, s.lease(t).request.Memory, 2*s.purse.maxBatch)
}

func TestWhoseBatchesAreUsualIsTakenAtItsWord(t *testing.T) {
	body, err := batch(10).MarshalProto()
	require.NoError(t, err)
	size := int64(len(body))
	worst := footprint.WorstCase(footprint.TracesRequest, len(body))
	weighed := admission.Share{Memory: footprint.Traces(batch(10).Traces()), WireSize: size, Items: 10}
	for name, k := range map[string]struct {
		ratio float64
		most  int64
		want  admission.Share
	}{
		"usual":                    {ratio: 3, most: worst, want: admission.Share{Memory: 3 * size, WireSize: size}},
		"nothing is known":         {most: worst, want: weighed},
		"too much for all of them": {ratio: 3, most: worst - 1, want: weighed},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) {
				c.Ease = func(context.Context) Ease { return Ease{Ratio: k.ratio, Trusted: k.most} }
			})
			s.handle = func(context.Context) error {
				if owes := s.purse.owed.Load() >= worst; owes != (k.want != weighed) {
					return status.Errorf(codes.Internal, "it owes its worst case: %v", owes)
				}
				return nil
			}
			for range 2 { // the second one finds that the first has given back its trust
				_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(10))
				require.NoError(t, err)
			}
			s.closed(t)
			for _, l := range s.scribe.ended {
				require.Equal(t, k.want, l.request.Share)
			}
			require.Len(t, s.scribe.ended, 2)
		})
	}
}

func TestARequestThatBreaksOnlyWhenDecoded(t *testing.T) {
	s := open(t, func(c *Settings) { c.Ease = func(context.Context) Ease { return Ease{Worst: mib} } })
	r := raw.Dial(t, s.address, "127.0.0.1")
	r.Send(t, r.Open(t, raw.TracesMethod), raw.Message(false, []byte("\xff\xff\xff\xff")), 100, true)
	require.Equal(t, map[string]int{invalidArgument: 1}, r.Await(t, 1))
	r.Close(t)
	s.closed(t)
	require.Equal(t, codes.InvalidArgument, status.Code(s.lease(t).outcome))
}

func TestAHeavyRequestOfAnAuthenticatedTenant(t *testing.T) {
	authenticate := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{"who": {"acme"}})}), request)
	}
	s := open(t, nil, grpc.ChainUnaryInterceptor(authenticate))
	s.scribe.identify = func(ctx context.Context) string {
		return client.FromContext(ctx).Metadata.Get("who")[0]
	}
	s.scribe.admit = func(context.Context, admission.Request) error {
		assert.Empty(t, s.heavy.queues, "no place is held while waiting in line")
		return nil
	}
	s.handle = func(context.Context) error {
		assert.Empty(t, s.heavy.queues, "no place is held downstream")
		return nil
	}
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(12_000))
	require.NoError(t, err)
	require.Greater(t, s.lease(t).request.WireSize, int64(heavyFrom))
	require.EqualValues(t, 12_000, s.lease(t).request.Items)
	s.closed(t)
}

func TestARequestThatFindsNoPlace(t *testing.T) {
	for name, admitted := range map[string]bool{"to be weighed": false, "to be decoded": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *Settings) { c.QueueTimeout = 1 })
			taken := s.heavy.free
			take := func() { s.heavy.free = 0 }
			if admitted {
				s.scribe.admit = func(context.Context, admission.Request) error { take(); return nil }
			} else {
				take()
			}
			_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(12_000))
			info, retry := refused(t, err, codes.Unavailable)
			assert.Equal(t, "queue_timeout", info.Reason)
			assert.NotNil(t, retry)
			assert.Zero(t, s.codec.decoded.Load())
			if admitted {
				var refusal *admission.Error
				assert.ErrorAs(t, s.lease(t).outcome, &refusal)
				assert.Equal(t, admission.QueueTimeout, refusal.Reason)
			} else {
				assert.EqualValues(t, 1, s.refused.Load())
			}
			s.heavy.free = taken
			s.closed(t)
		})
	}
}

// Codes as they are on the wire.
const (
	canceled          = "1"
	invalidArgument   = "3"
	resourceExhausted = "8"
	internalError     = "13"
	unavailable       = "14"
)

func TestARequestThatIsNoProtobuf(t *testing.T) {
	s := open(t, nil)
	r := raw.Dial(t, s.address, "127.0.0.1")
	r.Send(t, r.Open(t, raw.TracesMethod), raw.Message(false, []byte("\xff\xff\xff\xff")), 100, true)
	assert.Equal(t, map[string]int{invalidArgument: 1}, r.Await(t, 1))
	r.Close(t)
	s.closed(t)
	assert.Empty(t, s.scribe.asked)
	assert.Zero(t, s.codec.decoded.Load())
}

func TestWhatBecameOfABatchIsItsLeasesOutcome(t *testing.T) {
	s := open(t, nil)
	s.handle = func(context.Context) error { return status.Error(codes.DataLoss, "the disk is gone") }
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(1))
	assert.Equal(t, codes.DataLoss, status.Code(err))
	s.closed(t)
	assert.Equal(t, codes.DataLoss, status.Code(s.lease(t).outcome))
}

func TestAPanicIsAnAnswer(t *testing.T) {
	s := open(t, nil)
	s.handle = func(context.Context) error { panic("broken") }
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(1))
	info, retry := refused(t, err, codes.Internal)
	assert.Equal(t, "panic", info.Reason)
	assert.Nil(t, retry)
	s.closed(t)
	var refusal *admission.Error
	assert.ErrorAs(t, s.lease(t).outcome, &refusal)
	assert.Equal(t, admission.Panicked, refusal.Reason)
	entries := s.log.All()
	assert.Len(t, entries, 1)
	assert.Equal(t, "broken", entries[0].ContextMap()["panic"])
	assert.Contains(t, entries[0].ContextMap()["stack"], "TestAPanicIsAnAnswer")
}

func TestAPanicBeforeThereIsALease(t *testing.T) {
	s := open(t, nil)
	s.scribe.admit = func(context.Context, admission.Request) error { panic("broken") }
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(1))
	info, _ := refused(t, err, codes.Internal)
	assert.Equal(t, "panic", info.Reason)
	assert.EqualValues(t, 1, s.refused.Load())
	s.closed(t)
}

func TestWhoeverIsNotAuthenticatedIsNobodysBatch(t *testing.T) {
	authenticate := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	s := open(t, nil, grpc.ChainUnaryInterceptor(authenticate))
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(100))
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	s.closed(t)
	require.Empty(t, s.scribe.asked)
	require.Zero(t, s.codec.decoded.Load())
}

func TestCompressedMessagesCountByWhatTheyAre(t *testing.T) {
	s := open(t, nil)
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(1000), grpc.UseCompressor("gzip"))
	require.NoError(t, err)
	s.closed(t)
	body, err := batch(1000).MarshalProto()
	require.NoError(t, err)
	require.EqualValues(t, len(body), s.lease(t).request.WireSize)
	require.EqualValues(t, 1, s.codec.decoded.Load())
}

func TestASecondMessageIsNotTakenForTheFirst(t *testing.T) {
	s := open(t, nil)
	r := raw.Dial(t, s.address, "127.0.0.1")
	body, err := batch(10).MarshalProto()
	require.NoError(t, err)
	id := r.Open(t, raw.TracesMethod)
	r.Send(t, id, raw.Message(false, body), 16384, false)
	r.Send(t, id, raw.Message(false, body), 16384, true)
	require.Equal(t, map[string]int{internalError: 1}, r.Await(t, 1))
	r.Close(t)
	s.closed(t)
	require.Empty(t, s.scribe.asked, "grpc refuses a unary call of two messages")
}

func TestACheckRefusesBeforeAnythingIsWeighed(t *testing.T) {
	s := open(t, nil)
	s.scribe.check = func(ctx context.Context, r admission.Request) error {
		assert.Equal(t, "acme", metadata.ValueFromIncomingContext(ctx, "tenant")[0])
		assert.Equal(t, "traces", r.Signal)
		return &admission.Error{Reason: admission.TenantBreaker, Observed: 9, Limit: 8}
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme")
	_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(ctx, batch(1))
	info, _ := refused(t, err, codes.Unavailable)
	require.Equal(t, "tenant_breaker", info.Reason)
	require.Empty(t, s.scribe.asked)
	s.closed(t)
}
