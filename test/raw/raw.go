// SPDX-License-Identifier: Apache-2.0

// Package raw is a client of gRPC that can do what those of grpc never would, for tests of what stands before a server.
package raw

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TracesMethod is the export of traces.
const TracesMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// Client is one connection. It is not safe for concurrent use.
type Client struct {
	conn   net.Conn
	out    *bufio.Writer
	framer *http2.Framer
	block  bytes.Buffer
	header *hpack.Encoder
	next   uint32
	always []string // headers
	pongs  chan struct{}
	gone   sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	answers  map[string]int // by grpc-status
	answered int
}

// Dial connects from a loopback address. The headers, by name and value, go with every call.
func Dial(t *testing.T, to, from string, headers ...string) *Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	require.NoError(t, err)
	c := &Client{conn: conn, always: headers, out: bufio.NewWriter(conn), next: 1, pongs: make(chan struct{}), answers: map[string]int{}}
	c.changed = sync.NewCond(&c.mu)
	c.framer = http2.NewFramer(c.out, conn)
	c.header = hpack.NewEncoder(&c.block)
	_, err = c.out.WriteString(http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, c.framer.WriteSettings())
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.gone.Go(func() { c.read(t) })
	return c
}

// read takes the answers.
func (c *Client) read(t *testing.T) {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			close(c.pongs)
			return
		}
		switch f := frame.(type) {
		case *http2.PingFrame:
			if f.IsAck() && f.Data == [8]byte{1} {
				c.pongs <- struct{}{}
			}
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					c.mu.Lock()
					c.answers[field.Value]++
					c.answered++
					c.mu.Unlock()
					c.changed.Broadcast()
				}
			}
		}
	}
}

// Open begins a call with further headers, by name and value, and returns its stream.
func (c *Client) Open(t *testing.T, method string, headers ...string) uint32 {
	c.block.Reset()
	for i, headers := 0, slices.Concat([]string{
		":method", "POST", ":scheme", "http", ":path", method, ":authority", "site",
		"content-type", "application/grpc", "te", "trailers",
	}, c.always, headers); i < len(headers); i += 2 {
		require.NoError(t, c.header.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]}))
	}
	id := c.next
	c.next += 2
	require.NoError(t, c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true,
	}))
	return id
}

// Send sends bytes in frames of a size, and ends the stream if they are the last.
func (c *Client) Send(t *testing.T, id uint32, data []byte, frame int, last bool) {
	for {
		n := min(frame, len(data))
		end := last && n == len(data)
		require.NoError(t, c.framer.WriteData(id, end, data[:n]))
		if data = data[n:]; len(data) == 0 {
			return
		}
	}
}

// Reset ends a stream.
func (c *Client) Reset(t *testing.T, id uint32) {
	require.NoError(t, c.framer.WriteRSTStream(id, http2.ErrCodeCancel))
}

// Heard returns once the server has read all frames so far.
func (c *Client) Heard(t *testing.T) {
	require.NoError(t, c.framer.WritePing(false, [8]byte{1}))
	require.NoError(t, c.out.Flush())
	<-c.pongs
}

// Await returns the answers by their codes once there are so many.
func (c *Client) Await(t *testing.T, answers int) map[string]int {
	require.NoError(t, c.out.Flush())
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.answered < answers {
		c.changed.Wait()
	}
	return maps.Clone(c.answers)
}

// Close ends the connection.
func (c *Client) Close(t *testing.T) {
	require.NoError(t, c.conn.Close())
	c.gone.Wait()
}

// Message returns a message as gRPC frames it.
func Message(compressed bool, body []byte) []byte {
	m := make([]byte, 5, 5+len(body))
	if compressed {
		m[0] = 1
	}
	binary.BigEndian.PutUint32(m[1:], uint32(len(body)))
	return append(m, body...)
}

// Announced is the start of a message of that length.
func Announced(length int) []byte {
	m := make([]byte, 5)
	binary.BigEndian.PutUint32(m[1:], uint32(length))
	return m
}
