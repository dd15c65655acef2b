// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Header names the tenant whose a request is.
const Header = "x-scope-orgid"

// Accepted is the answer to a request that was taken. A refusal is known by its reason, and by its code where it
// gives none.
const Accepted = "accepted"

// Protocol is a way to send.
type Protocol string

// The protocols.
const (
	GRPC     Protocol = "gRPC"
	HTTP     Protocol = "HTTP"
	HTTPGzip Protocol = "HTTP gzip"
	JSON     Protocol = "JSON"
)

// sender sends one request with a body over a connection of its own and returns the answer.
type sender func(ctx context.Context, body []byte) string

// body is the payload of a load, packed as it is sent.
func (l Load) body() ([]byte, error) {
	encode := l.Payload.protobuf
	if l.Protocol == JSON {
		encode = l.Payload.json
	}
	body, err := encode(l.Size)
	switch {
	case err != nil:
		return nil, err
	case l.Protocol == HTTPGzip:
		return pack("gzip", body)
	default:
		return pack(l.Encoding, body)
	}
}

// senders makes n of them, each with a connection of its own.
func (l Load) senders(n int) (all []sender, err error) {
	all = make([]sender, n)
	for i := range all {
		if l.Protocol == GRPC {
			all[i], err = l.overGRPC()
		} else {
			all[i] = l.overHTTP()
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (l Load) overGRPC() (sender, error) {
	again := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond}
	conn, err := grpc.NewClient(l.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(l.dial),
		// A busy machine may need long for a handshake; whoever is not listened to is told at once.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 20 * time.Second}))
	if err != nil {
		return nil, err
	}
	if err := connected(conn); err != nil {
		return nil, err
	}
	_, method := l.Payload.path()
	options := []grpc.CallOption{grpc.ForceCodecV2(asIs{})}
	if l.Encoding != "" {
		encoding.RegisterCompressor(packed(l.Encoding))
		options = append(options, grpc.UseCompressor(l.Encoding))
	}
	return func(ctx context.Context, body []byte) string {
		ctx = metadata.AppendToOutgoingContext(ctx, Header, l.Tenant)
		return answer(status.Convert(conn.Invoke(ctx, method, body, nil, options...)))
	}, nil
}

// connected waits for a connection, so that the first request finds one.
func connected(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return errors.New("no connection to " + conn.Target())
		}
	}
	return nil
}

func (l Load) overHTTP() sender {
	path, _ := l.Payload.path()
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 100,
		DisableCompression:  true,
		DialContext:         func(ctx context.Context, _, to string) (net.Conn, error) { return l.dial(ctx, to) },
	}}
	return func(ctx context.Context, body []byte) string {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Address+path, bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		req.Header.Set(Header, l.Tenant)
		req.Header.Set("Content-Type", "application/x-protobuf")
		read := proto.Unmarshal
		if l.Protocol == JSON {
			req.Header.Set("Content-Type", "application/json")
			read = protojson.Unmarshal
		}
		if l.Protocol == HTTPGzip {
			req.Header.Set("Content-Encoding", "gzip")
		}
		resp, err := client.Do(req)
		if err != nil {
			return "no answer"
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if resp.StatusCode == http.StatusOK {
			return Accepted
		}
		var s rpcstatus.Status
		if err != nil || read(said, &s) != nil {
			return resp.Status
		}
		return answer(status.FromProto(&s))
	}
}

// dial connects from the tenant's own address where loopback has several, for clients at the same address share
// what it may have on its way in.
func (l Load) dial(ctx context.Context, to string) (net.Conn, error) {
	var d net.Dialer
	if runtime.GOOS == "linux" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, l.Tenant[0])}
	}
	return d.DialContext(ctx, "tcp", to)
}

func answer(s *status.Status) string {
	if s.Code() == codes.OK {
		return Accepted
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	if strings.Contains(s.Message(), "data refused due to high memory usage") { // what memory_limiter says
		return "high memory usage"
	}
	return s.Code().String()
}

// asIs is a codec that sends bytes as they are and reads no answers.
type asIs struct{}

// Name implements encoding.CodecV2.
func (asIs) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (asIs) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (asIs) Unmarshal(mem.BufferSlice, any) error { return nil }
