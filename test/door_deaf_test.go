// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
	"github.com/otel-governor/otel-governor/test/raw"
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

// stallers are at an address of their own.
const stallers = "127.0.2.1"

// announced are calls on one connection that have announced 16 MB each.
type announced struct {
	*raw.Client
	streams []uint32
}

// announce opens connections with so many calls on each, and returns what closes them.
func announce(t *testing.T, c *collector, connections, calls int) (all []announced, end func()) {
	for range connections {
		a := announced{Client: raw.Dial(t, c.grpc, stallers, bomb.Header, "offender")}
		for range calls {
			id := a.Open(t, raw.TracesMethod)
			a.Send(t, id, raw.Announced(16_000_000), 5, false)
			a.streams = append(a.streams, id)
		}
		a.Heard(t)
		all = append(all, a)
	}
	return all, func() {
		for _, a := range all {
			a.Close(t)
		}
	}
}

// TestWhatIsAnnouncedAndNotSentIsBounded has 1500 calls announce 16 MB each and then say nothing more. At least 500 come
// in, for what one address may have at most while nobody else is there; the others are refused.
func TestWhatIsAnnouncedAndNotSentIsBounded(t *testing.T) {
	const connections, calls, least, perCall = 150, 10, 500, 16 << 10 // as the door has it
	stallsBeside(t, bomb.GRPC, func(c *collector) (check, end func()) {
		_, end = announce(t, c, connections, calls)
		check = func() {
			m := c.scrape()
			wire, limit := m.sum("otelcol_governor_wire_usage"), m.sum("otelcol_governor_wire_limit")
			refused := c.refusalsIn("header", "memory_contended")
			here := connections*calls - refused
			t.Logf("%d calls are under way and hold %d bytes of %d, %d were refused", here, wire, limit, refused)
			if here < least || refused == 0 || wire < here*perCall || wire > limit {
				t.Errorf("want some refused, %d under way at least, and all of them paid for", least)
			}
		}
		return check, end
	})
}

// TestWhatIsSentInPartIsBounded has 510 calls come in that announce 16 MB each, and then each send 200 KiB of that, five
// times of what may be on its way in, and say nothing more.
func TestWhatIsSentInPartIsBounded(t *testing.T) {
	const connections, calls, part, frame = 170, 3, 200 << 10, 16 << 10
	stallsBeside(t, bomb.GRPC, func(c *collector) (check, end func()) {
		all, end := announce(t, c, connections, calls)
		if refused := c.refusalsIn("header", "memory_contended"); refused > 0 {
			t.Errorf("%d calls were refused, want none yet", refused)
		}
		for _, a := range all {
			for _, id := range a.streams {
				a.Send(t, id, make([]byte, part), frame, false)
			}
			a.Heard(t)
		}
		check = func() {
			m := c.scrape()
			wire, limit := m.sum("otelcol_governor_wire_usage"), m.sum("otelcol_governor_wire_limit")
			t.Logf("what is left of %d calls of %d KiB each holds %d bytes of %d", connections*calls, part>>10, wire, limit)
			if wire > limit {
				t.Error("want no more than may be on its way in")
			}
		}
		return check, end
	})
}

// TestSlowBodiesAreBounded has 500 clients send a body of a megabyte at 1 KiB/s, and two send nine tenths of 8 MiB
// and no more. Who is cut off comes back at once.
func TestSlowBodiesAreBounded(t *testing.T) {
	const slow, stalled, step, large = 500, 2, 4 << 10, 8 * mib // a body begins with that step
	stallsBeside(t, bomb.HTTP, func(c *collector) (check, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var answers answerBook
		wire := func() int64 { return c.scrape().sum("otelcol_governor_wire_usage") }
		for range slow {
			all.Go(func() { answers.keep(ctx, t, c.http, 1_000_000, 1<<10) })
		}
		eventually(t, "all slow ones are being read", func() bool { return wire() >= slow*step })
		for range stalled {
			all.Go(func() { answers.keep(ctx, t, c.http, large, large/10*9) })
		}
		eventually(t, "the large ones are being read", func() bool { return wire() >= slow*step+stalled*large/10*9 })
		most := make(chan int64)
		go func() {
			var m int64
			for ctx.Err() == nil {
				m = max(m, wire())
				pause(ctx, 100*time.Millisecond)
			}
			most <- m
		}()
		check = func() {
			m := c.scrape()
			n, limit := m.sum("otelcol_governor_batch_duration", "error_type=body_timeout"), m.sum("otelcol_governor_wire_limit")
			cancel()
			all.Wait()
			peak := <-most
			t.Logf("%d bytes were on their way in at most, of %d; slow bodies were cut off %d times; answers %v", peak, limit, n, answers.byCode)
			if peak > limit+large+1 {
				t.Error("that is more than the bound and one large body")
			}
			if n < slow {
				t.Errorf("slow bodies were cut off %d times, want each once at least", n)
			}
			if len(answers.byCode) != 1 || answers.byCode[http.StatusServiceUnavailable] < n {
				t.Errorf("slow clients were answered %v, want 503 and a reason", answers.byCode)
			}
		}
		return check, func() {
			cancel()
			all.Wait()
		}
	})
}

// answerBook is what slow clients were answered.
type answerBook struct {
	mu     sync.Mutex
	byCode map[int]int64
}

// keep has a client announce a body, and send a piece of it, and one more each second unless that is all it will ever
// send; and begin again whenever it is cut off.
func (b *answerBook) keep(ctx context.Context, t *testing.T, to string, size, piece int) {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(stallers)}}).DialContext(ctx, "tcp", to)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		over, leave := context.WithCancel(ctx)
		gone := context.AfterFunc(over, func() { conn.Close() })
		go func() {
			head := fmt.Sprintf("POST /v1/traces HTTP/1.1\r\nHost: x\r\n%s: offender\r\n"+
				"Content-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n", bomb.Header, size)
			_, err := io.WriteString(conn, head)
			for sent := 0; err == nil && over.Err() == nil && sent+piece < size; sent += piece {
				_, err = conn.Write(make([]byte, piece))
				pause(over, time.Second)
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			b.mu.Lock()
			if b.byCode == nil {
				b.byCode = map[int]int64{}
			}
			b.byCode[resp.StatusCode]++
			b.mu.Unlock()
			resp.Body.Close()
		}
		leave()
		gone()
	}
}

// stallsBeside has a neighbor send for half a minute beside clients who stall: what stall returns checks them at the
// end, and then ends them.
func stallsBeside(t *testing.T, protocol bomb.Protocol, stall func(*collector) (check, end func())) {
	t.Helper()
	o := besideBombs(30 * time.Second)
	o.YAML = append(o.YAML, "receivers::otlp::protocols::grpc::max_recv_msg_size_mib: 64") // what is announced may come
	o.Neighbor.Protocol, o.Offender = protocol, bomb.Load{}
	o.Beside = func(bc *bomb.Collector) (func() error, error) {
		c := &collector{t: t, grpc: bc.GRPC, http: bc.HTTP, metricsServer: bc.Metrics}
		check, end := stall(c)
		end = sync.OnceFunc(end)
		t.Cleanup(end)
		return func() error {
			check()
			end()
			c.wantNothingLeft()
			return nil
		}, nil
	}
	row := contend(t, o)
	t.Logf("\n%s\n%v", bomb.Heading, row)
	wantUnharmed(t, row)
}
