// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/otel-governor/otel-governor/test/raw"
)

// secret is what lets clients in, and abusers too unless that is what they abuse.
var secret = [2]string{"authorization", "Bearer sesame"}

// insider is a client that may come in.
var insider = naming{sign: func(ctx context.Context, _ string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, secret[0], secret[1])
}}

// TestNothingIsLostToBadClients has clients do what none should, each kind from an address of its own, while others
// send as it should be. When half of it is done, and again at the end, the collector holds nothing, and at the end it
// is not larger than it was before.
func TestNothingIsLostToBadClients(t *testing.T) {
	const each, halves, atATime = 100_000, 2, 100
	c := start(t, setup{config: "gateway.yaml", traced: true, yaml: []string{atTheDoor, `
extensions::bearertokenauth: {token: sesame}
extensions::governor::memory::pool_size: 256MiB
exporters::nop: {}
receivers::otlp::protocols: {grpc: {auth: {authenticator: bearertokenauth}}, http: {auth: {authenticator: bearertokenauth}}}
service::extensions: [bearertokenauth, governor]
service::pipelines::traces::exporters: [nop]`}})
	var resident [halves]int64
	for half := range halves {
		var all sync.WaitGroup
		at := 0
		for _, abuse := range c.abuses() {
			at++
			from := fmt.Sprintf("127.0.9.%d", at)
			all.Go(func() {
				for left := each / halves; left > 0; left -= atATime {
					abuse(from, atATime)
				}
			})
		}
		good, over, sent := startSource(t, tenant{c, "good", insider}, 0, 8), make(chan struct{}), 0
		go func() {
			defer close(over)
			all.Wait()
		}()
		for done := false; !done; sent++ {
			wantAccepted(t, tenant{c, "good", insider}.send(protocols[1+sent%2], traces, one("good", 0)))
			select {
			case <-over:
				done = true
			default:
			}
		}
		good.stop()
		resident[half] = c.wantAllGivenBack()
		tally := good.tally()
		t.Logf("good calls over HTTP: %d, over gRPC:%v; %d MiB resident", sent, tally, resident[half]>>20)
		if tally.accepted != tally.sent || tally.sent == 0 {
			t.Errorf("a good client was refused: %v", tally)
		}
	}
	for why, n := range c.refusedFor() {
		t.Log(n, "were refused:", why)
		if !strings.HasSuffix(why, " canceled") {
			t.Error("what is to be abused was refused before")
		}
	}
	if before, after := resident[0], resident[1]; after > before+before/4 {
		t.Errorf("%d bytes are resident after half of it and %d at the end", before, after)
	}
}

// abuses are what clients do that are not well, a number of times from an address.
func (c *collector) abuses() map[string]func(from string, n int) {
	body, err := traces.make(items(50, "span")).MarshalProto()
	if err != nil {
		c.t.Fatal(err)
	}
	post := func(path, authorization string, length int, body []byte) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: application/x-protobuf\r\n"+
			"Content-Length: %d\r\n\r\n%s", path, authorization, length, body)
	}
	answered := func(request string, code int) func(string, int) {
		return func(from string, n int) { c.abuseHTTP(from, n, request, code) }
	}
	vanishing := func(request string) func(string, int) {
		return func(from string, n int) {
			for range n {
				c.abuseHTTP(from, 1, request, 0)
			}
		}
	}
	abuses := map[string]func(from string, n int){
		"failed authentication": func(from string, n int) {
			r := raw.Dial(c.t, c.grpc, from)
			defer r.Close(c.t)
			for range n {
				r.Send(c.t, r.Open(c.t, raw.TracesMethod), raw.Message(false, body), 16384, true)
			}
			if answers := r.Await(c.t, n); answers["16"] != n {
				c.t.Errorf("who is not known is answered %v", answers)
			}
		},
		"failed authentication over HTTP": answered(post("/v1/traces", "", len(body), body), http.StatusUnauthorized),
		"an unknown path":                 answered(post("/v1/nothing", secret[1], len(body), body), http.StatusNotFound),
		"a body that is no protobuf": answered(
			post("/v1/traces", secret[1], len(body), bytes.Repeat([]byte{0xff}, len(body))), http.StatusBadRequest),
		"a client that vanishes amid its body":  vanishing(post("/v1/traces", secret[1], 2*len(body), body)),
		"a client that vanishes after its body": vanishing(post("/v1/traces", secret[1], len(body), body)),
	}
	for name, abuse := range raw.Abuses {
		abuses[name] = func(from string, n int) {
			r := raw.Dial(c.t, c.grpc, from, secret[:]...)
			defer r.Close(c.t)
			for range n {
				abuse(c.t, r, body)
			}
			r.Heard(c.t)
		}
	}
	return abuses
}

// wantAllGivenBack checks that leases and places have ended by themselves, and that bytes on their way in end with one
// collection of garbage. It returns the memory of the process.
func (c *collector) wantAllGivenBack() int64 {
	c.t.Helper()
	ended := time.Now()
	c.wantIdle()
	idle := time.Now()
	if n := c.gcs.between(ended, idle).count; n > 1 { // one may have been told of late
		c.t.Errorf("%d collections of garbage before nothing was held", n)
	}
	kept := c.scrape().sum("otelcol_governor_wire_usage")
	good := tenant{c, "good", insider}
	for c.gcs.between(idle, time.Now()).count < 2 { // the second one begins after all of it
		wantAccepted(c.t, good.send(grpcProtocol, traces, one("garbage", mib)))
	}
	c.wantNothingLeft()
	n := c.gcs.between(idle, time.Now()).count
	c.t.Logf("idle after %v, with %d bytes of the wire left, which %d collections found", idle.Sub(ended).Round(time.Millisecond), kept, n)
	if n > 3 {
		c.t.Errorf("%d collections of garbage before nothing was on its way in", n)
	}
	return c.scrape().sum("otelcol_process_memory_rss")
}

// refusedFor returns what was refused, by phase and reason.
func (c *collector) refusedFor() map[string]uint64 {
	refused := map[string]uint64{}
	for _, s := range c.scrape()["otelcol_governor_batch_duration"].GetMetric() {
		labels := map[string]string{}
		for _, l := range s.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if reason := labels["error_type"]; reason != "" {
			refused[labels["governor_phase"]+" "+reason] += s.Histogram.GetSampleCount()
		}
	}
	return refused
}

// abuseHTTP sends a request so many times on one connection, and wants the same answer to each, or vanishes if there
// is to be none.
func (c *collector) abuseHTTP(from string, n int, request string, want int) {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", c.http)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetLinger(0) // else the ports of those who vanish would run out
	if _, err := io.WriteString(conn, strings.Repeat(request, n)); err != nil {
		c.t.Error(err)
		return
	}
	answers := bufio.NewReader(conn)
	for range n {
		if want == 0 {
			return
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			c.t.Error(err)
			return
		}
		if _, err = io.Copy(io.Discard, resp.Body); resp.StatusCode != want || err != nil {
			c.t.Errorf("answered %s, %v, want %d", resp.Status, err, want)
			return
		}
	}
}
