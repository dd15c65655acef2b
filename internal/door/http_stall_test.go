// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

// cutAllOff treats all bodies being read as slow, and others as waiting.
func (h *house) cutAllOff() {
	h.bodies.mu.Lock()
	for p := range h.bodies.coming {
		p.allowed.Store(0)
	}
	h.bodies.mu.Unlock()
	h.bodies.cutOff()
}

func TestAConnectionThatStallsIsAnsweredAndOthersAreNot(t *testing.T) {
	for _, major := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", major), func(t *testing.T) {
			h := newHouse(t)
			s := start(t, h, receiver)
			transport := &http.Transport{Protocols: new(http.Protocols), ExpectContinueTimeout: 1e18}
			transport.Protocols.SetHTTP1(major == 1)
			transport.Protocols.SetUnencryptedHTTP2(major == 2)
			defer transport.CloseIdleConnections()

			reading := make(chan struct{}) // the server asks for the body when it begins to read it
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got100Continue: func() { close(reading) },
			})
			body, never := io.Pipe()
			defer never.Close()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/traces", body)
			require.NoError(t, err)
			r.Header.Set("Expect", "100-continue")
			go func() {
				<-reading
				h.cutAllOff()
			}()
			resp, err := transport.RoundTrip(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, major, resp.ProtoMajor)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), admission.BodyTimeout)

			code, _ := post(t, &http.Client{Transport: transport}, s.URL+"/v1/traces", io.LimitReader(&endless{}, 10), "Expect", "100-continue")
			require.Equal(t, http.StatusOK, code)
		})
	}
}

func TestAClientThatIsRefusedAndKeepsItsBodyBackIsAnswered(t *testing.T) {
	h := newHouse(t)
	h.clerk.check = func(context.Context, admission.Request) error {
		return &admission.Error{Reason: admission.MemoryPressure}
	}
	s := start(t, h, receiver)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.True(t, resp.Close)
}
