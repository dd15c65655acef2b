// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// TestDeafClientsAreBounded has clients who ignore how long they are told to wait, and whose calls may take an hour.
func TestDeafClientsAreBounded(t *testing.T) {
	for _, protocol := range []bomb.Protocol{bomb.GRPC, bomb.HTTP} {
		t.Run(string(protocol), func(t *testing.T) {
			o := besideBombs(time.Minute)
			o.Neighbor.Protocol, o.Offender.Protocol, o.Offender.Deadline = protocol, protocol, time.Hour
			row := contend(t, o)
			t.Logf("\n%s\n%v", bomb.Heading, row)
			wantUnharmed(t, row)
			wantBreaker(t, row, true)
		})
	}
}

// TestWhatIsAnnouncedAndNotSentIsBounded has 500 calls announce 16 MB each and then say nothing more.
func TestWhatIsAnnouncedAndNotSentIsBounded(t *testing.T) {
	const connections, calls = 50, 10
	stallsBeside(t, bomb.GRPC, connections, func(c *bomb.Collector, conn net.Conn) error {
		_, err := conn.Write(announcement(calls))
		return err
	})
}

// TestSlowBodiesAreBounded has 500 clients send a body of a megabyte at 1 KiB/s, and two send nine tenths of 8 MiB
// and no more.
func TestSlowBodiesAreBounded(t *testing.T) {
	const slow, stalled = 500, 2
	var n int
	stallsBeside(t, bomb.HTTP, slow+stalled, func(c *bomb.Collector, conn net.Conn) error {
		n++
		size, sent := 1_000_000, 1<<10
		if n > slow {
			size, sent = 8*mib, 8*mib/10*9
		}
		head := fmt.Sprintf("POST /v1/traces HTTP/1.1\r\nHost: x\r\n%s: offender\r\nContent-Type: application/x-protobuf\r\n"+
			"Content-Length: %d\r\n\r\n", bomb.Header, size)
		if _, err := io.WriteString(conn, head); err != nil {
			return err
		}
		if n > slow {
			go func() { _, _ = conn.Write(make([]byte, sent)) }() // until it is cut off
			return nil
		}
		go func() {
			for tick := range time.Tick(time.Second) {
				_ = tick
				if _, err := conn.Write(make([]byte, sent)); err != nil {
					return
				}
			}
		}()
		return nil
	})
}

// stallsBeside has a neighbor send for half a minute beside connections on which a client says something and then
// waits.
func stallsBeside(t *testing.T, protocol bomb.Protocol, connections int, say func(*bomb.Collector, net.Conn) error) {
	o := besideBombs(30 * time.Second)
	o.YAML = append(o.YAML, "receivers::otlp::protocols::grpc::max_recv_msg_size_mib: 64") // what is announced may come
	o.Neighbor.Protocol, o.Offender = protocol, bomb.Load{}
	o.Beside = func(c *bomb.Collector) (func() error, error) {
		to := c.GRPC
		if protocol != bomb.GRPC {
			to = c.HTTP
		}
		var all sync.WaitGroup
		var conns []net.Conn
		end := func() error {
			wire := (&collector{t: t, metricsServer: c.Metrics}).scrape().sum("otelcol_governor_wire_usage")
			if t.Logf("%d bytes on their way in at the end", wire); wire == 0 {
				t.Error("nobody stalls")
			}
			for _, conn := range conns {
				conn.Close()
			}
			all.Wait()
			return nil
		}
		for range connections {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, 1)}}).Dial("tcp", to)
			if err != nil {
				return nil, errors.Join(err, end())
			}
			conns = append(conns, conn)
			all.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			if err := say(c, conn); err != nil {
				return nil, errors.Join(err, end())
			}
		}
		return end, nil
	}
	row := contend(t, o)
	t.Logf("\n%s\n%v", bomb.Heading, row)
	wantUnharmed(t, row)
}

// announcement is what a client of gRPC sends that begins so many calls, each with a message of 16 MB of which
// nothing comes.
func announcement(calls int) []byte {
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer, headers := http2.NewFramer(&out, nil), hpack.NewEncoder(&block)
	_ = framer.WriteSettings() // a buffer takes everything
	for call := range calls {
		block.Reset()
		for _, h := range [][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":authority", "x"},
			{":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"},
			{"content-type", "application/grpc"},
			{"te", "trailers"},
			{bomb.Header, "offender"},
		} {
			_ = headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
		}
		id := uint32(2*call + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		_ = framer.WriteData(id, false, []byte{0, 0, 0xf4, 0x24, 0}) // 16 000 000 bytes
	}
	return out.Bytes()
}
