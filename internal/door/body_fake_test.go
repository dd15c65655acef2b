// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// sender is a request whose body comes as the test writes it.
type sender struct {
	*httptest.ResponseRecorder
	net.Conn // what is written to it is the body; closing it ends the body
	server   net.Conn
	deadline time.Time // last set
	answered chan struct{}
	end      context.CancelFunc // the client goes away
}

// SetReadDeadline is found by http.ResponseController.
func (s *sender) SetReadDeadline(at time.Time) error {
	s.deadline = at
	return s.server.SetReadDeadline(at)
}

// Write is the answer's; the body is sent with send.
func (s *sender) Write(b []byte) (int, error) { return s.ResponseRecorder.Write(b) }

// send begins a request from an address, of a length that may be unknown. It must run in a bubble.
func (h *house) send(from string, length int64) *sender { return h.sendAs("text/plain", from, length) }

func (h *house) sendAs(media, from string, length int64) *sender {
	s := &sender{ResponseRecorder: httptest.NewRecorder(), answered: make(chan struct{})}
	s.Conn, s.server = net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	r := httptest.NewRequest(http.MethodPost, "/v1/traces", s.server).WithContext(ctx)
	r.RemoteAddr, r.ContentLength = net.JoinHostPort(from, "1"), length
	r.Header.Set("Content-Type", media)
	go func() {
		h.HTTPHandler(http.HandlerFunc(receiver)).ServeHTTP(s, r)
		cancel()
		_ = s.server.Close()
		close(s.answered)
	}()
	return s
}

// body sends bytes and returns once they have been read, or the request is over.
func (s *sender) body(bytes int) { _, _ = s.Conn.Write(make([]byte, bytes)) }

// dribble sends that many bytes a second, eight times a second, until the request is over.
func (s *sender) dribble(bytes int) {
	for {
		if _, err := s.Conn.Write(make([]byte, bytes/8)); err != nil {
			return
		}
		<-time.After(time.Second / 8)
	}
}

// answer waits for it.
func (s *sender) answer() (code int, text string) {
	<-s.answered
	return s.Code, s.Body.String()
}

// inBubble runs a story in virtual time. At its end nothing is held.
func inBubble(t *testing.T, story func(*testing.T, *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		story(t, h)
		<-time.After(time.Second) // so that all senders find out
		h.requireEmpty(t)
	})
}
