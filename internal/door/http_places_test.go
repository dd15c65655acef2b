// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

// emptySpans is a small body that is much work to decode.
var emptySpans = func() string {
	const of = `{"resourceSpans":[{"scopeSpans":[{"spans":[{}`
	return of + strings.Repeat(",{}", 60_000) + `]}]}]}`
}()

// handle has h handle a body in JSON.
func (h *house) handle(ctx context.Context, next http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/traces", strings.NewReader(body))
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	h.HTTPHandler(next).ServeHTTP(w, r)
	return w
}

func TestAHandlerDecodesInAPlace(t *testing.T) {
	weight, err := footprint.JSON(footprint.TracesRequest, []byte(emptySpans), 1<<40)
	require.NoError(t, err)
	longest := time.Duration(weight.Memory/heapRatio) * heavyHold / heavyFrom
	for name, tt := range map[string]struct {
		body   string
		decode time.Duration
		settle bool
		held   time.Duration
	}{
		"until the limiter has the data":       {emptySpans, longest / 2, true, longest / 2},
		"to its end, where there is none":      {emptySpans, longest / 2, false, longest/2 + longest/4},
		"no longer than decoding takes":        {emptySpans, 2 * longest, false, longest},
		"not at all, where there is little to": {`{"resourceSpans":[]}`, longest, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.heavy.free = 1
				done := make(chan struct{})
				go func() {
					defer close(done)
					h.handle(t.Context(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						<-time.After(tt.decode)
						if tt.settle {
							_, _ = admission.LeaseFromContext(r.Context()).Settle(r.Context(), admission.Request{})
						}
						<-time.After(longest / 4)
					}), tt.body)
				}()
				synctest.Wait()
				held, ok := h.heavy.take(t.Context(), party{name: "other"}, 1)
				require.True(t, ok)
				require.Equal(t, tt.held, held)
				h.heavy.give(party{name: "other"})
				<-done
				require.Equal(t, 1, h.heavy.free)
			})
		})
	}
}

func TestWhatFindsNoPlaceToBeDecodedInIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.clerk.admit = func(context.Context, admission.Request) error {
			h.heavy.free = 0
			return nil
		}
		w := h.handle(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("handed on") }), emptySpans)
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), string(admission.QueueTimeout))
		var refusal *admission.Error
		require.ErrorAs(t, h.clerk.only(t).outcome, &refusal)
		require.Equal(t, admission.QueueTimeout, refusal.Reason)
	})
}

// TestAZipkinBodyIsAsMuchWorkAsWhatItMayBecome has one that is short and much to decode.
func TestAZipkinBodyIsAsMuchWorkAsWhatItMayBecome(t *testing.T) {
	h := newHouse(t)
	h.heavy.free = 1
	body := "[" + strings.Repeat(`{"id":"1"},`, 8000) + `{"id":"1"}]`
	r := httptest.NewRequest(http.MethodPost, "/api/v2/spans", strings.NewReader(body))
	h.HTTPHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		require.Zero(t, h.heavy.free)
	})).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, 1, h.heavy.free)
	h.clerk.only(t)
}

// TestManySmallJSONBodiesWaitInPlacesOfTheirOwn has no place for what is heavy, or none for what is not.
func TestManySmallJSONBodiesWaitInPlacesOfTheirOwn(t *testing.T) {
	small := `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(" ", lightFrom/jsonTimes) + `]}]}]}`
	for name, tt := range map[string]struct {
		heavy, light int
		code         int
	}{
		"beside heavy work": {0, 1, http.StatusOK},
		"beside its like":   {1, 0, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.heavy.free, h.light.free = tt.heavy, tt.light
				w := h.handle(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), small)
				require.Equal(t, tt.code, w.Code, w.Body)
				require.Equal(t, []int{tt.heavy, tt.light}, []int{h.heavy.free, h.light.free})
			})
		})
	}
}
