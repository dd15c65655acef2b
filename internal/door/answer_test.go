// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otel-governor/otel-governor/admission"
)

// What clients are promised for each reason.
var answers = []struct {
	reason admission.Reason
	code   int
	status codes.Code
	delay  bool
}{
	{admission.BatchMemory, 400, codes.InvalidArgument, false},
	{admission.BatchItems, 400, codes.InvalidArgument, false},
	{admission.MemoryLimit, 400, codes.InvalidArgument, false},
	{admission.RateBurst, 400, codes.InvalidArgument, false},
	{admission.TenantUnknown, 403, codes.PermissionDenied, false},
	{admission.Panicked, 500, codes.Internal, false},
	{admission.MemoryContended, 503, codes.Unavailable, true},
	{admission.QueueFull, 503, codes.Unavailable, true},
	{admission.QueueTimeout, 503, codes.Unavailable, true},
	{admission.MemoryPressure, 503, codes.Unavailable, true},
	{admission.DiskLow, 503, codes.Unavailable, true},
	{admission.BodyTimeout, 503, codes.Unavailable, true},
	{admission.Connections, 503, codes.Unavailable, true},
	{admission.ProcessingTimeout, 503, codes.Unavailable, true},
	{admission.ShuttingDown, 503, codes.Unavailable, false},
	{admission.TenantConcurrency, 503, codes.Unavailable, true},
	{admission.TenantMemory, 503, codes.Unavailable, true},
	{admission.TenantBreaker, 503, codes.Unavailable, true},
	{admission.TenantRate, 429, codes.ResourceExhausted, true},
	{admission.Canceled, 503, codes.Canceled, false},
}

func TestARefusalIsAnsweredInTheEncodingOfTheRequest(t *testing.T) {
	parsers := map[string]func([]byte, proto.Message) error{
		protobufType: proto.Unmarshal,
		jsonType:     protojson.Unmarshal,
	}
	for _, want := range answers {
		refusal := &admission.Error{Reason: want.reason, Observed: 4711, Limit: 1147, RetryAfter: 2100 * time.Millisecond}
		for sent, wanted := range map[string]string{
			"application/x-protobuf":          protobufType,
			"application/json; charset=utf-8": jsonType,
			"application/x-thrift":            textType,
			"":                                textType,
			";":                               textType,
		} {
			t.Run(string(want.reason)+" "+sent, func(t *testing.T) {
				h := newHouse(t)
				h.clerk.check = func(context.Context, admission.Request) error { return refusal }
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader("a body"))
				if sent != "" {
					r.Header.Set("Content-Type", sent)
				}
				h.HTTPHandler(never(t)).ServeHTTP(w, r)

				got := w.Result()
				require.Equal(t, want.code, got.StatusCode)
				require.Equal(t, wanted, got.Header.Get("Content-Type"))
				require.Empty(t, got.Header.Get("Connection"))
				if want.delay {
					require.Equal(t, "3", got.Header.Get("Retry-After"), "2.1 s, and not too early")
				} else {
					require.NotContains(t, got.Header, "Retry-After")
				}
				body, err := io.ReadAll(got.Body)
				require.NoError(t, err)
				if parse := parsers[wanted]; parse != nil {
					var s spb.Status
					require.NoError(t, parse(body, &s))
					require.Equal(t, want.status, codes.Code(s.Code))
					require.Equal(t, refusal.Error(), s.Message)
					details, wanted := status.FromProto(&s).Details(), refusal.GRPCStatus().Details()
					require.Len(t, details, len(wanted))
					for i, d := range details {
						require.True(t, proto.Equal(wanted[i].(proto.Message), d.(proto.Message)), d)
					}
				} else {
					require.Equal(t, refusal.Error(), string(body))
				}
				h.requireEmpty(t)
			})
		}
	}
}

func TestNoDelayOverHTTPIsShorterThanASecond(t *testing.T) {
	h := newHouse(t)
	w := httptest.NewRecorder()
	h.answer(w, httptest.NewRequest(http.MethodPost, "/", nil), &admission.Error{Reason: admission.QueueFull, RetryAfter: time.Millisecond})
	require.Equal(t, "1", w.Result().Header.Get("Retry-After"))
}

func TestUnderCriticalPressureAClientIsSentElsewhere(t *testing.T) {
	h := newHouse(t)
	h.critical.Store(true)
	w := httptest.NewRecorder()
	h.answer(w, httptest.NewRequest(http.MethodPost, "/", nil), &admission.Error{Reason: admission.MemoryPressure})
	require.Equal(t, "close", w.Result().Header.Get("Connection"))
}

func TestAnErrorThatIsNoRefusalIsInternal(t *testing.T) {
	h := newHouse(t)
	w := httptest.NewRecorder()
	h.answer(w, httptest.NewRequest(http.MethodPost, "/", nil), io.ErrUnexpectedEOF)
	require.Equal(t, http.StatusInternalServerError, w.Code)
}
