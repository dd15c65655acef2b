// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// clientHeader names a client to a witness. It means nothing to anybody else.
const clientHeader = "x-client"

// witness stands between clients and a collector, and notes when each of them came and what it was told.
type witness struct {
	grpc, http string // host:port

	mu      sync.Mutex
	visits  map[string][]visit // by client
	stalled chan struct{}      // bodies stop on the way until it is closed, if there is one
}

// visit is one request.
type visit struct {
	began, answered time.Time
	answer          // over HTTP, with the delay as the header tells it
	delay           time.Duration
}

// startWitness starts one before a collector.
func startWitness(t *testing.T, c *collector) *witness {
	t.Helper()
	w := &witness{visits: map[string][]visit{}}
	w.grpc = w.serve(t, c.grpc, (*http.Protocols).SetUnencryptedHTTP2)
	w.http = w.serve(t, c.http, (*http.Protocols).SetHTTP1)
	return w
}

// serve takes requests of one protocol for an address.
func (w *witness) serve(t *testing.T, to string, set func(*http.Protocols, bool)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	set(protocols, true)
	own := sync.Map{} // transports: every client has connections of its own
	server := &http.Server{Protocols: protocols, Handler: w.before(&httputil.ReverseProxy{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			transport, _ := own.LoadOrStore(r.Header.Get(clientHeader), &http.Transport{Protocols: protocols, DisableCompression: true})
			return transport.(*http.Transport).RoundTrip(r)
		}),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: to})
			r.Out.Body = w.halfway(r.Out.Body)
		},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, err error) { // as where nobody listens
			http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		},
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		for _, transport := range own.Range {
			transport.(*http.Transport).CloseIdleConnections()
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// before notes what passes through next.
func (w *witness) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		a := visit{began: time.Now()}
		seen := &heard{ResponseWriter: rw}
		next.ServeHTTP(seen, r)
		a.answered = seen.at
		a.answer, a.delay = seen.answer()
		w.mu.Lock()
		defer w.mu.Unlock()
		client := r.Header.Get(clientHeader)
		w.visits[client] = append(w.visits[client], a)
	})
}

// of returns what a client has tried and was answered.
func (w *witness) of(client string) []visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.visits[client])
}

// count returns how many requests there were.
func (w *witness) count() (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.visits {
		n += int64(len(v))
	}
	return n
}

// stall has bodies stop on the way from now on, until what it returns is called.
func (w *witness) stall() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stalled := make(chan struct{})
	w.stalled = stalled
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stalled = nil
		close(stalled)
	})
}

// halfway is a body that stops on the way, if bodies do now.
func (w *witness) halfway(body io.ReadCloser) io.ReadCloser {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		return body
	}
	return &halfBody{ReadCloser: body, until: w.stalled, closed: make(chan struct{})}
}

type halfBody struct {
	io.ReadCloser
	until, closed chan struct{}
	begun         bool
	once          sync.Once
}

func (h *halfBody) Read(b []byte) (int, error) {
	if !h.begun {
		h.begun = true
		return h.ReadCloser.Read(b[:min(len(b), 64)])
	}
	select {
	case <-h.until:
		return h.ReadCloser.Read(b)
	case <-h.closed:
		return 0, io.ErrUnexpectedEOF
	}
}

func (h *halfBody) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.ReadCloser.Close()
}

// heard is what a client is told.
type heard struct {
	http.ResponseWriter
	code int
	at   time.Time // before the client hears of it
	body bytes.Buffer
}

func (s *heard) WriteHeader(code int) {
	s.code, s.at = code, time.Now()
	s.ResponseWriter.WriteHeader(code)
}

func (s *heard) Write(b []byte) (int, error) {
	s.body.Write(b)
	return s.ResponseWriter.Write(b)
}

// Unwrap returns what is recorded.
func (s *heard) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// answer reads it as the client does.
func (s *heard) answer() (answer, time.Duration) {
	field := func(name string) string { // a trailer, or a header where there is nothing else
		if v := s.Header().Get(http.TrailerPrefix + name); v != "" {
			return v
		}
		return s.Header().Get(name)
	}
	read := func(b []byte) answer {
		var st rpcstatus.Status
		_ = proto.Unmarshal(b, &st) // what is none has no reason
		return answer{status: status.FromProto(&st)}
	}
	if field("Grpc-Status") != "" {
		details, _ := base64.RawStdEncoding.DecodeString(field("Grpc-Status-Details-Bin"))
		a := read(details)
		if code, _ := strconv.Atoi(field("Grpc-Status")); codes.Code(code) != a.status.Code() {
			a = answer{status: status.New(codes.Code(code), field("Grpc-Message"))}
		}
		delay, _ := a.delay()
		return a, delay
	}
	if s.code == http.StatusOK {
		return answer{status: status.New(0, ""), http: s.code}, 0
	}
	a := read(s.body.Bytes())
	a.http, a.retryAfter = s.code, s.Header().Get("Retry-After")
	seconds, _ := strconv.Atoi(a.retryAfter)
	return a, time.Duration(seconds) * time.Second
}
