// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// answer is what a client was told.
type answer struct {
	status     *status.Status // OK where all was well
	http       int            // 0 over gRPC
	retryAfter string         // the header; "" over gRPC
	closes     bool           // over HTTP: the client must come back by another connection
}

// protocol is a way to send OTLP. What a context has as outgoing gRPC metadata goes out as headers over HTTP too.
type protocol struct {
	name string
	send func(*collector, context.Context, signal, request) answer
}

var protocols = []protocol{
	{"grpc", overGRPC},
	{"http protobuf", overHTTP("application/x-protobuf", request.MarshalProto, func(body []byte, s *rpcstatus.Status) error {
		return proto.Unmarshal(body, s)
	})},
	{"http json", overHTTP("application/json", request.MarshalJSON, func(body []byte, s *rpcstatus.Status) error {
		return protojson.Unmarshal(body, s)
	})},
}

func overGRPC(c *collector, ctx context.Context, s signal, r request) answer {
	conn, err := c.dial()
	if err != nil {
		c.t.Error(err)
		return answer{status: status.New(codes.Unknown, err.Error())}
	}
	defer conn.Close()
	return answer{status: status.Convert(s.send(ctx, conn, r))}
}

func (c *collector) dial(options ...grpc.CallOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(c.grpc,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(options...))
}

func overHTTP(kind string, marshal func(request) ([]byte, error), read func([]byte, *rpcstatus.Status) error,
) func(*collector, context.Context, signal, request) answer {
	return func(c *collector, ctx context.Context, s signal, r request) answer {
		failed := func(err error) answer {
			c.t.Errorf("%s over HTTP: %v", s.name, err)
			return answer{status: status.New(codes.Unknown, err.Error())}
		}
		body, err := marshal(r)
		if err != nil {
			return failed(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.http+s.path, bytes.NewReader(body))
		if err != nil {
			return failed(err)
		}
		headers, _ := metadata.FromOutgoingContext(ctx)
		for name, values := range headers {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return failed(err)
		}
		defer resp.Body.Close()
		a := answer{
			status: status.New(codes.OK, ""), http: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After"), closes: resp.Close,
		}
		if resp.StatusCode == http.StatusOK {
			return a
		}
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			return failed(err)
		}
		if got := resp.Header.Get("Content-Type"); got != kind {
			c.t.Errorf("the answer to %s is %s: %q", kind, got, said)
		}
		var st rpcstatus.Status
		if err := read(said, &st); err != nil {
			return failed(err)
		}
		a.status = status.FromProto(&st)
		return a
	}
}

// send sends a batch and returns the answer.
func (c *collector) send(p protocol, s signal, b batch) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.send(c, ctx, s, s.make(b))
}

// sending sends a batch, without a deadline, and returns at once; the answer comes through the channel.
func (c *collector) sending(p protocol, s signal, b batch) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- p.send(c, context.Background(), s, s.make(b)) }()
	return answers
}

// reason returns the token that a refusal names, or "".
func (a answer) reason() string {
	for _, d := range a.status.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return ""
}

// delay returns how long the client is asked to wait, and whether it is.
func (a answer) delay() (time.Duration, bool) {
	for _, d := range a.status.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration(), true
		}
	}
	return 0, false
}

func (a answer) String() string {
	b, _ := json.Marshal(map[string]any{
		"code": a.status.Code().String(), "message": a.status.Message(), "details": a.status.Proto().GetDetails(),
		"http": a.http, "Retry-After": a.retryAfter,
	})
	return string(b)
}

// wantAccepted checks that a batch was taken.
func wantAccepted(t *testing.T, a answer) {
	t.Helper()
	if a.status.Code() != codes.OK {
		t.Errorf("refused, want accepted: %v", a)
	}
}

// wantLater checks that a batch was refused for a reason that will pass, in a way that every stock client
// takes for an invitation to send it again.
func wantLater(t *testing.T, a answer, reason string) {
	t.Helper()
	if a.status.Code() != codes.Unavailable || a.reason() != reason {
		t.Errorf("want Unavailable for %s: %v", reason, a)
		return
	}
	if delay, ok := a.delay(); !ok || delay < time.Second {
		t.Errorf("want a RetryInfo of 1s at least: %v", a)
	}
	if a.http == 0 {
		return
	}
	seconds, err := strconv.Atoi(a.retryAfter)
	if a.http != http.StatusServiceUnavailable || err != nil || seconds < 1 {
		t.Errorf("want 503 and Retry-After of 1 at least: %v", a)
	}
}

// wantNever checks that a batch was refused for good.
func wantNever(t *testing.T, a answer, reason string) {
	t.Helper()
	if a.status.Code() != codes.InvalidArgument || a.reason() != reason {
		t.Errorf("want InvalidArgument for %s: %v", reason, a)
	}
	if _, ok := a.delay(); ok || a.retryAfter != "" {
		t.Errorf("want no delay: %v", a)
	}
	if a.http != 0 && a.http != http.StatusBadRequest {
		t.Errorf("want 400: %v", a)
	}
}
