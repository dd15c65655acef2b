// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

func TestABodyThatFailsIsAnsweredAsWithoutADoor(t *testing.T) {
	whole := zipped(bytes.Repeat([]byte("telemetry"), 10_000)).Bytes()
	broken := bytes.Clone(whole)
	broken[len(broken)-8] ^= 1 // the checksum
	for name, tt := range map[string]struct {
		body    []byte
		headers []string
	}{
		"too large":             {make([]byte, 5000), nil},
		"too large, unpacked":   {zipped(make([]byte, 100_000)).Bytes(), []string{"Content-Encoding", "gzip"}},
		"cut short, unpacked":   {whole[:len(whole)-20], []string{"Content-Encoding", "gzip"}},
		"wrong sum, unpacked":   {broken, []string{"Content-Encoding", "gzip"}},
		"not compressed at all": {[]byte("telemetry"), []string{"Content-Encoding", "gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			most := int64(20 << 20)
			if strings.HasPrefix(name, "too large") {
				most = 4999
			}
			answers := map[bool]string{}
			for behind, handler := range map[bool]http.Handler{
				false: http.HandlerFunc(receiver),
				true: h.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					require.Nil(t, admission.LeaseFromContext(r.Context()), "it will never be decoded")
					receiver(w, r)
				})),
			} {
				s := httptest.NewServer(inFront(handler, most))
				defer s.Close()
				code, answer := post(t, s.Client(), s.URL+"/v1/traces", bytes.NewReader(tt.body), tt.headers...)
				require.Equal(t, http.StatusBadRequest, code)
				answers[behind] = answer
			}
			require.Equal(t, answers[false], answers[true])
			require.Empty(t, h.clerk.asked)
			h.requireEmpty(t)
		})
	}
}

func TestAHandlerGetsWhatCameBeforeTheBodyFailed(t *testing.T) {
	h := newHouse(t)
	broken := errors.New("the line went dead")
	body := io.MultiReader(strings.NewReader("half a batch"), failing{broken})
	r := httptest.NewRequest(http.MethodPost, "/v1/traces", body)
	r.ContentLength = 100
	h.HTTPHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.EqualValues(t, 100, r.ContentLength)
		got, err := io.ReadAll(r.Body)
		require.Equal(t, "half a batch", string(got))
		require.Equal(t, broken, err)
	})).ServeHTTP(httptest.NewRecorder(), r)
	h.requireEmpty(t)
}

// failing is a reader that fails.
type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

func TestAClientThatVanishesLeavesNothing(t *testing.T) {
	h := newHouse(t)
	failed := make(chan error)
	s := start(t, h, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n%s", make([]byte, 50_000))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Error(t, <-failed)
	require.Empty(t, h.clerk.asked)
}

func TestOutcomeOfWhatWasHandedOn(t *testing.T) {
	refusal := &admission.Error{Reason: admission.TenantRate}
	for name, tt := range map[string]struct {
		settle error
		code   int // 0: none is written
		want   error
	}{
		"nothing said":                {nil, 0, nil},
		"accepted":                    {nil, http.StatusOK, nil},
		"an error of the receiver's":  {nil, http.StatusServiceUnavailable, errHandler},
		"refused by a limiter":        {refusal, http.StatusTooManyRequests, refusal},
		"refused, and hidden":         {refusal, http.StatusOK, refusal},
		"settled too late, and known": {admission.ErrReleased, http.StatusOK, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			s := start(t, h, func(w http.ResponseWriter, r *http.Request) {
				lease := admission.LeaseFromContext(r.Context())
				h.clerk.only(t).settle = tt.settle
				_, err := lease.Settle(r.Context(), admission.Request{})
				require.Equal(t, tt.settle, err)
				if tt.code != 0 {
					w.WriteHeader(http.StatusProcessing)
					w.WriteHeader(tt.code)
				}
			})
			post(t, s.Client(), s.URL+"/v1/traces", strings.NewReader("a batch"))
			require.Equal(t, tt.want, h.clerk.only(t).outcome)
		})
	}
}

func TestAPanicIsTheAnswerToThatOneRequest(t *testing.T) {
	h := newHouse(t)
	s := start(t, h, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4711")
		panic("a bug")
	})
	code, answer := post(t, s.Client(), s.URL+"/v1/traces", strings.NewReader("{}"), "Content-Type", jsonType)
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, answer, "panic")
	var refusal *admission.Error
	require.ErrorAs(t, h.clerk.only(t).outcome, &refusal)
	require.Equal(t, admission.Panicked, refusal.Reason)
	logged := h.log.FilterMessage("Processing a request panicked").All()
	require.Len(t, logged, 1)
	require.Equal(t, "a bug", logged[0].ContextMap()["panic"])
	require.Contains(t, logged[0].ContextMap()["stack"], "TestAPanicIsTheAnswer")
}

func TestAHandlerThatDoesNotReturnReleasesTheLease(t *testing.T) {
	for name, end := range map[string]func(http.ResponseWriter){
		"panic after the answer began": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte("half an ans"))
			w.(http.Flusher).Flush()
			panic("a bug")
		},
		"panic after nothing but a flush": func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			panic("a bug")
		},
		"aborted":         func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"goroutine ended": func(http.ResponseWriter) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader("a batch"))
			handler := h.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { end(w) }))
			var panicked any
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { panicked = recover() }()
				handler.ServeHTTP(w, r)
			})
			wg.Wait()
			if name == "goroutine ended" {
				require.Nil(t, panicked)
			} else {
				require.Equal(t, http.ErrAbortHandler, panicked, "so that no client takes it for an answer")
			}
			require.Error(t, h.clerk.only(t).outcome)
			h.requireEmpty(t)
		})
	}
}

func TestAResponseWriterCanDoWhatItCould(t *testing.T) {
	for name, use := range map[string]func(*testing.T, http.ResponseWriter){
		"flush": func(t *testing.T, w http.ResponseWriter) {
			require.NoError(t, http.NewResponseController(w).Flush())
		},
		"flush of old": func(t *testing.T, w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"deadlines": func(t *testing.T, w http.ResponseWriter) {
			require.NoError(t, http.NewResponseController(w).SetWriteDeadline(longAgo.AddDate(1000, 0, 0)))
		},
		"hijack": func(t *testing.T, w http.ResponseWriter) {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			require.NoError(t, buffered.Flush())
			require.NoError(t, conn.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newHouse(t), func(w http.ResponseWriter, _ *http.Request) { use(t, w) })
			code, _ := post(t, s.Client(), s.URL+"/v1/traces", strings.NewReader("a batch"))
			require.Equal(t, http.StatusOK, code)
		})
	}
}

func TestTrailersArriveWithTheBody(t *testing.T) {
	h := newHouse(t)
	s := start(t, h, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		require.Equal(t, "there", r.Trailer.Get("Signature"))
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/traces", io.MultiReader(strings.NewReader("a batch")))
	require.NoError(t, err)
	r.Trailer = http.Header{"Signature": {"there"}}
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestAFanOfRequestsEndsAtZero(t *testing.T) {
	h := newHouse(t)
	s := start(t, h, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Then") {
		case "panic":
			panic("a bug")
		case "abort":
			panic(http.ErrAbortHandler)
		case "refuse":
			http.Error(w, "no", http.StatusServiceUnavailable)
		default:
			receiver(w, r)
		}
	})
	s.Config.ErrorLog = nil
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/traces", bytes.NewReader(make([]byte, i*20_000+j)))
				r.Header.Set("Then", []string{"", "panic", "abort", "refuse"}[j%4])
				if resp, err := s.Client().Do(r); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, h.clerk.leases)
}
