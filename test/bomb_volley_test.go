// SPDX-License-Identifier: Apache-2.0

package test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/test/bomb"
	"github.com/otel-governor/otel-governor/test/raw"
)

// TestAVolleyOfPackedBombsLeavesTheNeighborAlone sends what is 4 kB on the wire, 4 MB unpacked and more than half a GB
// decoded. In all it sends 5 MB.
func TestAVolleyOfPackedBombsLeavesTheNeighborAlone(t *testing.T) { besidePacked(t, bomb.Bare, "gzip") }

// TestAVolleyOfPlainBombsLeavesTheNeighborAlone has calls begin that look small and then bring all that they may.
func TestAVolleyOfPlainBombsLeavesTheNeighborAlone(t *testing.T) { besideVolleys(t, bomb.Bare, "") }

// besidePacked has an offender become known for small messages and then send 400 large ones at once, headers and all:
// faster than a client that hears what it is told.
func besidePacked(t *testing.T, payload bomb.Payload, encoding string) {
	t.Helper()
	body, err := payload.Packed(tooLarge, encoding)
	require.NoError(t, err)
	const connections, each, small = 4, 100, 100
	volley := func(to string) {
		clients := make([]*raw.Client, connections)
		for i := range clients {
			clients[i] = raw.Dial(t, to, "127.0.1.200", bomb.Header, "offender")
		}
		for i := range small {
			clients[0].Send(t, clients[0].Open(t, raw.TracesMethod), raw.Message(false, nil), 16384, true)
			clients[0].Await(t, i+1)
		}
		for _, c := range clients {
			for range each {
				c.Send(t, c.Open(t, raw.TracesMethod, "grpc-encoding", encoding), raw.Message(true, body), 16384, true)
			}
			c.Await(t, 0)
		}
		<-time.After(3 * time.Second)
		for _, c := range clients {
			c.Close(t)
		}
	}
	o := besideBombs(10 * time.Second)
	o.Name, o.Offender = "volleys in "+encoding, bomb.Load{}
	o.Beside = func(c *bomb.Collector) (func() error, error) {
		var volleys sync.WaitGroup
		volleys.Go(func() {
			for range 3 {
				volley(c.GRPC)
			}
		})
		return func() error { volleys.Wait(); return nil }, nil
	}
	wantUnharmedByVolleys(t, contend(t, o))
}

// besideVolleys has a stock client do so again and again.
func besideVolleys(t *testing.T, payload bomb.Payload, encoding string) {
	t.Helper()
	o := besideBombs(10 * time.Second)
	o.Name = "volleys of " + string(payload) + " " + encoding
	o.Offender.Payload, o.Offender.Encoding = payload, encoding
	o.Offender.Clients, o.Offender.Volley, o.Offender.Deadline = 4, 400, 3*time.Second
	wantUnharmedByVolleys(t, contend(t, o))
}

// wantUnharmedByVolleys is wantUnharmed, but that calls which were let in before anybody could know how much they bring
// may be canceled, as no other answer is left.
func wantUnharmedByVolleys(t *testing.T, row bomb.Row) {
	t.Helper()
	t.Logf("\n%s\n%v", bomb.Heading, row)
	if few := row.Neighbor.Sent / 20; row.Neighbor.Sent-row.Neighbor.Answers[bomb.Accepted] <= few {
		row.Neighbor.Answers[bomb.Accepted] = row.Neighbor.Sent // as beside other bombs
	}
	row.Offender.Sent -= row.Offender.Answers["Canceled"]
	delete(row.Offender.Answers, "Canceled")
	wantUnharmed(t, row)
}
