// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The table of reasons, as it was promised and not as the code has it.
var promised = []struct {
	reason    admission.Reason
	token     string
	class     error
	code      codes.Code
	permanent bool
	retryInfo bool
	breach    bool
	figures   bool
}{
	{admission.BatchMemory, "batch_memory", admission.ErrLimitExceeded, codes.InvalidArgument, true, false, true, true},
	{admission.BatchItems, "batch_items", admission.ErrLimitExceeded, codes.InvalidArgument, true, false, true, true},
	{admission.MemoryLimit, "memory_limit", admission.ErrLimitExceeded, codes.InvalidArgument, true, false, true, true},
	{admission.RateBurst, "rate_burst", admission.ErrLimitExceeded, codes.InvalidArgument, true, false, false, true},
	{admission.TenantUnknown, "tenant_unknown", admission.ErrLimitExceeded, codes.PermissionDenied, true, false, false, false},
	{admission.Panicked, "panic", admission.ErrLimitExceeded, codes.Internal, true, false, true, false},
	{admission.MemoryContended, "memory_contended", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.QueueFull, "queue_full", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.QueueTimeout, "queue_timeout", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.MemoryPressure, "memory_pressure", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.DiskLow, "disk_low", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.BodyTimeout, "body_timeout", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.Connections, "connections", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.ProcessingTimeout, "processing_timeout", admission.ErrOverloaded, codes.Unavailable, false, true, false, true},
	{admission.ShuttingDown, "shutting_down", admission.ErrOverloaded, codes.Unavailable, false, false, false, false},
	{admission.TenantConcurrency, "tenant_concurrency", admission.ErrQuota, codes.Unavailable, false, true, false, true},
	{admission.TenantMemory, "tenant_memory", admission.ErrQuota, codes.Unavailable, false, true, false, true},
	{admission.TenantBreaker, "tenant_breaker", admission.ErrQuota, codes.Unavailable, false, true, false, true},
	{admission.TenantRate, "tenant_rate", admission.ErrQuota, codes.ResourceExhausted, false, true, false, true},
	{admission.Canceled, "canceled", nil, codes.Canceled, false, false, false, false},
}

func TestReasonsAreAsPromised(t *testing.T) {
	classes := []error{admission.ErrLimitExceeded, admission.ErrOverloaded, admission.ErrQuota}
	for _, want := range promised {
		t.Run(want.token, func(t *testing.T) {
			e := &admission.Error{
				Reason: want.reason, Tenant: "acme", Observed: 4711, Limit: 1147, RetryAfter: 2500 * time.Millisecond,
			}
			// As a receiver sees it: through whatever wraps it on the way.
			err := fmt.Errorf("on the way: %w", e)

			require.Equal(t, want.token, string(want.reason))
			require.Equal(t, want.breach, want.reason.Breach())
			require.Equal(t, want.permanent, want.reason.Permanent())
			require.Equal(t, want.retryInfo, want.reason.Delayed())
			require.Equal(t, want.permanent, consumererror.IsPermanent(err))
			for _, class := range classes {
				require.Equal(t, class == want.class, errors.Is(err, class), class)
			}

			s, ok := status.FromError(err)
			require.True(t, ok)
			require.Equal(t, want.code, s.Code())
			var info *errdetails.ErrorInfo
			var retry *errdetails.RetryInfo
			for _, d := range s.Details() {
				switch d := d.(type) {
				case *errdetails.ErrorInfo:
					info = d
				case *errdetails.RetryInfo:
					retry = d
				default:
					t.Errorf("unexpected detail %T", d)
				}
			}
			require.NotNil(t, info)
			require.Equal(t, want.token, info.Reason)
			require.NotEmpty(t, info.Domain)
			require.Equal(t, want.retryInfo, retry != nil)
			if retry != nil {
				require.Equal(t, 2500*time.Millisecond, retry.RetryDelay.AsDuration())
			}

			require.Contains(t, e.Error(), want.token)
			require.NotContains(t, e.Error(), "{")
			if want.figures {
				require.Contains(t, e.Error(), "4711")
				require.Contains(t, e.Error(), "1147")
			}
			require.NotContains(t, s.Message(), "acme", "a client is not told names")
		})
	}
}

func TestFiguresOfTheStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		err  admission.Error
		want map[string]string
	}{
		"in the reason's unit": {
			admission.Error{Reason: admission.BatchMemory, Observed: 3, Limit: 2},
			map[string]string{"observed": "3", "limit": "2", "unit": "By"},
		},
		"in the error's own": {
			admission.Error{Reason: admission.TenantRate, Observed: 3, Limit: 2, Unit: "{request}"},
			map[string]string{"observed": "3", "limit": "2", "unit": "{request}"},
		},
		"of a reason without any": {admission.Error{Reason: admission.ShuttingDown}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			info := tt.err.GRPCStatus().Details()[0].(*errdetails.ErrorInfo)
			require.Equal(t, tt.want, info.Metadata)
		})
	}
}

func TestNoDelayIsShorterThanASecond(t *testing.T) {
	// The OTLP/HTTP receiver makes whole seconds of it, and 0 would mean at once.
	for _, after := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond} {
		e := &admission.Error{Reason: admission.QueueFull, RetryAfter: after}
		retry := e.GRPCStatus().Details()[1].(*errdetails.RetryInfo)
		require.Equal(t, time.Second, retry.RetryDelay.AsDuration())
	}
}

func TestCauseOfACanceledRequest(t *testing.T) {
	gone := errors.New("the client hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	e := &admission.Error{Reason: admission.Canceled, Cause: context.Cause(ctx)}
	require.ErrorIs(t, e, gone)
	require.Contains(t, e.Error(), gone.Error())
	require.False(t, consumererror.IsPermanent(e))
}

func TestLeaseTravelsInTheContext(t *testing.T) {
	require.Nil(t, admission.LeaseFromContext(t.Context()))
	lease := new(someLease)
	require.Same(t, lease, admission.LeaseFromContext(admission.ContextWithLease(t.Context(), lease)))
}

type someLease struct {
	admission.Lease
	_ int // so that two of them differ
}
