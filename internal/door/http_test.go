// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

// never is a handler that must not be reached.
func never(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("handed on") })
}

// receiver answers like one: it reads all there is, and says so.
func receiver(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = r.Body.Close()
	fmt.Fprint(w, len(data))
}

// inFront is what a receiver has before its middlewares: bodies are bounded, and decompressed.
func inFront(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Header.Del("Content-Encoding")
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			r.Body = http.MaxBytesReader(w, z, most)
		}
		next.ServeHTTP(w, r)
	})
}

// start serves next behind h, over HTTP/1 and cleartext HTTP/2. When the test is over, nothing is held.
func start(t *testing.T, h *house, next http.HandlerFunc) *httptest.Server {
	handler := inFront(h.HTTPHandler(next), 20<<20)
	var serving sync.WaitGroup // the server does not wait for a connection that was hijacked
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		handler.ServeHTTP(w, r)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
		h.requireEmpty(t)
	})
	return s
}

func post(t *testing.T, c *http.Client, url string, body io.Reader, headers ...string) (int, string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", protobufType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

func zipped(data []byte) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return &b
}

func TestABodyArrivesAsItWasSentUnderItsLease(t *testing.T) {
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(h2c.CloseIdleConnections)
	unsized := func(data []byte) io.Reader { return io.MultiReader(bytes.NewReader(data)) }

	for _, size := range []int{1, bodyStep - 1, bodyStep, bodyStep + 1, 100_000, 3 << 20} {
		sent := bytes.Repeat([]byte("telemetry"), size/9+1)[:size]
		for name, tt := range map[string]struct {
			transport *http.Transport
			body      io.Reader
			headers   []string
		}{
			"sized":            {nil, bytes.NewReader(sent), nil},
			"chunked":          {nil, unsized(sent), nil},
			"gzip":             {nil, zipped(sent), []string{"Content-Encoding", "gzip"}},
			"expects continue": {&http.Transport{ExpectContinueTimeout: 1e18}, bytes.NewReader(sent), []string{"Expect", "100-continue"}},
			"HTTP/2":           {h2c, bytes.NewReader(sent), nil},
			"HTTP/2 unsized":   {h2c, unsized(sent), nil},
		} {
			t.Run(fmt.Sprintf("%d bytes %s", size, name), func(t *testing.T) {
				h := newHouse(t)
				s := start(t, h, func(w http.ResponseWriter, r *http.Request) {
					require.NotNil(t, admission.LeaseFromContext(r.Context()))
					require.EqualValues(t, size, r.ContentLength)
					require.Zero(t, h.wire.total.Load(), "no longer on its way in")
					require.EqualValues(t, size*34/10, h.books.now(), "while it is read")
					got, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.True(t, bytes.Equal(sent, got))
					require.EqualValues(t, size, h.books.now(), "while it is decoded")
					_, err = admission.LeaseFromContext(r.Context()).Settle(r.Context(), admission.Request{})
					require.NoError(t, err)
					require.Zero(t, h.books.now(), "once it is")
					require.NoError(t, r.Body.Close())
					_, err = r.Body.Read(make([]byte, 1))
					require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
					w.WriteHeader(http.StatusAccepted)
				})
				c := s.Client()
				if tt.transport != nil {
					c = &http.Client{Transport: tt.transport}
					defer tt.transport.CloseIdleConnections()
				}
				code, _ := post(t, c, s.URL+"/v1/logs", tt.body, tt.headers...)
				require.Equal(t, http.StatusAccepted, code)

				lease := h.clerk.only(t)
				require.NoError(t, lease.outcome)
				require.Equal(t, "logs", lease.request.Signal)
				require.True(t, lease.request.Provisional)
				require.EqualValues(t, size, lease.request.WireSize)
				require.Positive(t, lease.request.Memory)
			})
		}
	}
}

func TestWhatHasNoBodyPassesUntouched(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			h := newHouse(t)
			h.clerk.check = func(context.Context, admission.Request) error { return errors.New("not asked") }
			w := httptest.NewRecorder()
			h.HTTPHandler(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
				require.Same(t, w, got)
			})).ServeHTTP(w, httptest.NewRequest(method, "/", nil))
			require.Equal(t, http.StatusOK, w.Code)
			require.Empty(t, h.clerk.asked)
		})
	}
}

func TestAnUnknownFormatIsTakenForSixTimesItsSize(t *testing.T) {
	for name, headers := range map[string][]string{
		"/api/v2/logs": {"Content-Type", "application/json"},
		"/v1/traces":   {"Content-Type", "application/x-thrift"},
	} {
		h := newHouse(t)
		s := start(t, h, receiver)
		code, answer := post(t, s.Client(), s.URL+name, strings.NewReader("{[]}"), headers...)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "4", answer)
		require.EqualValues(t, 24, h.clerk.only(t).request.Memory)
	}
}

// refuseTooLarge makes h refuse what cannot fit, as a governor does.
func (h *house) refuseTooLarge() {
	h.clerk.admit = func(_ context.Context, r admission.Request) error {
		if r.Memory > h.books.maxBatch {
			return &admission.Error{Reason: admission.BatchMemory, Observed: r.Memory, Limit: h.books.maxBatch}
		}
		return nil
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("read")
	return 0, io.EOF
}

func TestALengthThatCouldNeverBeAdmittedIsRefusedUnread(t *testing.T) {
	h := newHouse(t)
	h.refuseTooLarge()
	r := httptest.NewRequest(http.MethodPost, "/v1/traces", unreadable{t})
	r.ContentLength = h.books.maxBatch + 1
	w := httptest.NewRecorder()
	h.HTTPHandler(never(t)).ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Len(t, h.clerk.asked, 1, "the tenant's breach like any other")
	require.Equal(t, h.books.maxBatch+1, h.clerk.asked[0].Memory)
	require.Zero(t, h.books.peak())
	h.requireEmpty(t)
}

func TestARefusedHeaderIsAnsweredUnread(t *testing.T) {
	h := newHouse(t)
	h.clerk.check = func(context.Context, admission.Request) error {
		return &admission.Error{Reason: admission.TenantBreaker}
	}
	w := httptest.NewRecorder()
	h.HTTPHandler(never(t)).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/traces", unreadable{t}))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Empty(t, h.clerk.asked)
	require.Zero(t, h.books.peak())
}

// endless is what a bomb unpacks to.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func TestABombIsNotReadBeyondWhatCouldBeAdmitted(t *testing.T) {
	h := newHouse(t)
	h.refuseTooLarge()
	bomb := &endless{}
	r := httptest.NewRequest(http.MethodPost, "/v1/traces", bomb)
	w := httptest.NewRecorder()
	h.HTTPHandler(never(t)).ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, h.books.maxBatch+1, bomb.read)
	require.Equal(t, h.books.maxBatch+1, h.clerk.asked[0].Memory)
	require.LessOrEqual(t, h.books.peak(), h.books.maxBatch+2*owedStep)
	h.requireEmpty(t)
}

func TestABodyOfExactlyTheLimitPasses(t *testing.T) {
	h := newHouse(t)
	for _, length := range []int64{h.books.maxBatch, -1} {
		r := httptest.NewRequest(http.MethodPost, "/v1/traces", io.LimitReader(&endless{}, h.books.maxBatch))
		r.ContentLength = length
		w := httptest.NewRecorder()
		h.HTTPHandler(http.HandlerFunc(receiver)).ServeHTTP(w, r)
		require.Equal(t, fmt.Sprint(h.books.maxBatch), w.Body.String())
	}
	h.requireEmpty(t)
}

func TestABodyThatWasTooLongIsNotLetInUnweighedOnceMoreMayBe(t *testing.T) {
	h := newHouse(t) // whose clerk admits everything
	for _, length := range []int64{h.books.maxBatch + 7, -1} {
		h.clerk.leases = nil
		r := httptest.NewRequest(http.MethodPost, "/v1/traces", io.LimitReader(&endless{}, h.books.maxBatch+7))
		r.ContentLength = length
		w := httptest.NewRecorder()
		h.HTTPHandler(never(t)).ServeHTTP(w, r)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.ErrorContains(t, h.clerk.only(t).outcome, "batch_memory")
	}
	h.requireEmpty(t)
}

func TestWhereNothingIsEnforcedALargeBodyPassesUnderItsFirstLease(t *testing.T) {
	h := newHouse(t)
	h.Observe = true
	for _, length := range []int64{h.books.maxBatch + 7, -1} {
		h.clerk.asked, h.clerk.leases = nil, nil
		r := httptest.NewRequest(http.MethodPost, "/v1/traces", io.LimitReader(&endless{}, h.books.maxBatch+7))
		r.ContentLength = length
		w := httptest.NewRecorder()
		h.HTTPHandler(http.HandlerFunc(receiver)).ServeHTTP(w, r)
		require.Equal(t, fmt.Sprint(h.books.maxBatch+7), w.Body.String())
		require.Len(t, h.clerk.asked, 1, "counted once")
		require.NoError(t, h.clerk.only(t).outcome)
	}
	h.requireEmpty(t)
}

func TestAfterARefusalTheConnectionIsUsedAgain(t *testing.T) {
	h := newHouse(t)
	refuse := true
	h.clerk.check = func(context.Context, admission.Request) error {
		if refuse {
			return &admission.Error{Reason: admission.TenantBreaker}
		}
		return nil
	}
	s := start(t, h, receiver)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	from := bufio.NewReader(conn)
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/traces", bytes.NewReader(make([]byte, 100_000)))
		require.NoError(t, err)
		require.NoError(t, r.Write(conn))
		resp, err := http.ReadResponse(from, r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.Equal(t, want, resp.StatusCode)
		require.False(t, resp.Close)
		refuse = false
	}
}
