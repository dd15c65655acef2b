// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const tracesMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// raw is a client that can do what a gRPC client never would. It is not safe for concurrent use.
type raw struct {
	conn   net.Conn
	out    *bufio.Writer
	framer *http2.Framer
	block  bytes.Buffer
	header *hpack.Encoder
	next   uint32
	pongs  chan struct{}
	gone   sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	answers  map[string]int // by grpc-status
	answered int
}

// rawDial connects from a loopback address.
func rawDial(t *testing.T, to, from string) *raw {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	require.NoError(t, err)
	r := &raw{conn: conn, out: bufio.NewWriter(conn), next: 1, pongs: make(chan struct{}), answers: map[string]int{}}
	r.changed = sync.NewCond(&r.mu)
	r.framer = http2.NewFramer(r.out, conn)
	r.header = hpack.NewEncoder(&r.block)
	_, err = r.out.WriteString(http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, r.framer.WriteSettings())
	r.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.gone.Go(func() { r.read(t) })
	return r
}

// read takes the answers.
func (r *raw) read(t *testing.T) {
	for {
		frame, err := r.framer.ReadFrame()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			close(r.pongs)
			return
		}
		switch f := frame.(type) {
		case *http2.PingFrame:
			if f.IsAck() && f.Data == [8]byte{1} {
				r.pongs <- struct{}{}
			}
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					r.mu.Lock()
					r.answers[field.Value]++
					r.answered++
					r.mu.Unlock()
					r.changed.Broadcast()
				}
			}
		}
	}
}

// open begins a call with further headers, by name and value, and returns its stream.
func (r *raw) open(t *testing.T, method string, headers ...string) uint32 {
	r.block.Reset()
	for i, headers := 0, append([]string{
		":method", "POST", ":scheme", "http", ":path", method, ":authority", "site",
		"content-type", "application/grpc", "te", "trailers",
	}, headers...); i < len(headers); i += 2 {
		require.NoError(t, r.header.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]}))
	}
	id := r.next
	r.next += 2
	require.NoError(t, r.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: r.block.Bytes(), EndHeaders: true,
	}))
	return id
}

// send sends bytes in frames of a size, and ends the stream if they are the last.
func (r *raw) send(t *testing.T, id uint32, data []byte, frame int, last bool) {
	for {
		n := min(frame, len(data))
		end := last && n == len(data)
		require.NoError(t, r.framer.WriteData(id, end, data[:n]))
		if data = data[n:]; len(data) == 0 {
			return
		}
	}
}

// reset ends a stream.
func (r *raw) reset(t *testing.T, id uint32) {
	require.NoError(t, r.framer.WriteRSTStream(id, http2.ErrCodeCancel))
}

// heard returns once the server has read all frames so far.
func (r *raw) heard(t *testing.T) {
	require.NoError(t, r.framer.WritePing(false, [8]byte{1}))
	require.NoError(t, r.out.Flush())
	<-r.pongs
}

// await returns the answers by their codes once there are so many.
func (r *raw) await(t *testing.T, answers int) map[string]int {
	require.NoError(t, r.out.Flush())
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.answered < answers {
		r.changed.Wait()
	}
	return maps.Clone(r.answers)
}

// close ends the connection.
func (r *raw) close(t *testing.T) {
	require.NoError(t, r.conn.Close())
	r.gone.Wait()
}

// message returns a message as gRPC frames it.
func message(compressed bool, body []byte) []byte {
	m := make([]byte, 5, 5+len(body))
	if compressed {
		m[0] = 1
	}
	binary.BigEndian.PutUint32(m[1:], uint32(len(body)))
	return append(m, body...)
}

// announced is the start of a message of that length.
func announced(length int) []byte {
	m := make([]byte, 5)
	binary.BigEndian.PutUint32(m[1:], uint32(length))
	return m
}
