// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// cause is what has batches refused that clients send over a door.
type cause struct {
	name, reason string
	phase        string // in which it is decided; "": any
	retried      bool
	tenant       string
	protocol     string                   // "": both
	batch        batch                    // its id is each client's own
	set          func(*testing.T, *scene) // what the collector is started with
	// raise brings it about. Then again is called, if there is one, until all clients have been refused, and at last end.
	raise func(*testing.T, *scene) (again, end func())
}

// scene is where a cause has its effect.
type scene struct {
	setup
	disk    string
	back    *collector
	witness *witness
	clients []string
}

// TestStockExportersHeedEveryReasonAtTheDoor has the Collector's exporters and those of the Go SDK send what the door
// refuses, for every reason. They come back with what may pass later, never before they were told to, and drop the rest.
func TestStockExportersHeedEveryReasonAtTheDoor(t *testing.T) {
	causes := slices.Clone(processWide)
	for _, o := range offences {
		causes = append(causes, o.cause())
	}
	for _, c := range causes {
		t.Run(c.reason+" "+c.name, func(t *testing.T) {
			t.Parallel()
			c.heed(t)
		})
	}
}

// heed has all clients be refused, and then no more.
func (c cause) heed(t *testing.T) {
	at := &scene{setup: setup{config: "governed.yaml", sink: startSink(t), profiles: true, yaml: []string{atTheDoor}}}
	if c.set != nil {
		c.set(t, at)
	}
	at.back = start(t, at.setup)
	at.witness = startWitness(t, at.back)
	senders, front := c.senders(t, at.witness)
	at.clients = slices.Sorted(maps.Keys(senders))
	again, end := func() {}, func() {}
	if c.raise != nil {
		if a, e := c.raise(t, at); a != nil {
			again, end = a, e
		} else {
			end = e
		}
	}
	var all sync.WaitGroup
	for name, send := range senders {
		b := c.batch
		b.ids = slices.Clone(b.ids)
		b.ids[0] = name
		all.Go(func() {
			if err := send(b); (err == nil) != c.retried && !strings.HasPrefix(name, "Collector") { // whose queue takes everything
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for _, name := range at.clients {
		eventually(t, name+" is refused", func() bool {
			again()
			return slices.ContainsFunc(at.witness.of(name), func(v visit) bool { return v.reason() == c.reason })
		})
	}
	end()
	all.Wait()
	if c.retried {
		for _, name := range at.clients {
			eventually(t, name+" comes back", func() bool { return at.sink.times(name) > 0 })
		}
	}
	front.terminate() // whatever it still has, it sends now
	for _, name := range at.clients {
		c.check(t, name, at)
	}
	if n := at.back.refusals(c.reason); c.phase != "" && at.back.refusalsIn(c.phase, c.reason) < n {
		t.Errorf("of %d refusals only %d are by %s", n, at.back.refusalsIn(c.phase, c.reason), c.phase)
	}
	at.back.wantIdle()
	// Of calls that are refused by their headers grpc keeps what the door charges 512 bytes for, until their deadlines.
	if left := at.back.scrape().sum("otelcol_governor_wire_usage"); left > 512*at.witness.count() {
		t.Errorf("%d bytes are on their way in at the end", left)
	}
}

// senders are the exporters that send over the protocols of the cause to a witness, by name. Two of them are those of
// the Collector that is returned too.
func (c cause) senders(t *testing.T, w *witness) (senders map[string]func(batch) error, front *collector) {
	t.Helper()
	senders = map[string]func(batch) error{}
	const collectorGRPC, collectorHTTP = "Collector grpc", "Collector http"
	headers := "::headers: {" + clientHeader + ": %s, " + headerName + ": '" + c.tenant + "'}"
	front = before(t, &collector{grpc: w.grpc, http: w.http},
		fmt.Sprintf("exporters::otlp_grpc"+headers, collectorGRPC), fmt.Sprintf("exporters::otlp_http"+headers, collectorHTTP))
	for name, sig := range map[string]signal{collectorGRPC: traces, collectorHTTP: logs} {
		senders[name] = func(b batch) error {
			wantAccepted(t, front.send(grpcProtocol, sig, b))
			return nil
		}
	}
	for _, e := range sdkExporters {
		to := w.grpc
		if e.http {
			to = w.http
		}
		made, err := e.make(t.Context(), to, map[string]string{clientHeader: e.name, headerName: c.tenant})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := made.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		senders[e.name] = func(b batch) error { return made.export(t.Context(), b) }
	}
	maps.DeleteFunc(senders, func(name string, _ func(batch) error) bool { return !strings.HasSuffix(name, c.protocol) })
	return senders, front
}

// check looks at what became of a client's batch.
func (c cause) check(t *testing.T, name string, at *scene) {
	t.Helper()
	visits := at.witness.of(name)
	refused, times := visits, at.sink.times(name)
	if c.retried {
		last := len(visits) - 1
		refused = visits[:last]
		if visits[last].status.Code() != codes.OK || times != 1 {
			t.Errorf("%s: it came %d times, at last answered %v", name, times, visits[last])
		}
	} else if len(visits) != 1 || times != 0 {
		t.Errorf("%s: it was tried %d times and came %d times, want once and never", name, len(visits), times)
	}
	least := time.Hour // between what a delay allowed and the next visit
	for i, v := range refused {
		if restarted := c.reason == "shutting_down" && v.reason() == ""; restarted {
			continue
		}
		told := c.retried && c.reason != "shutting_down"
		if v.reason() != c.reason || told != (v.delay >= time.Second) || !told && v.delay > 0 {
			t.Errorf("%s: answered %v, to wait %v", name, v, v.delay)
		}
		if i+1 < len(visits) {
			least = min(least, visits[i+1].began.Sub(v.answered)-v.delay)
		}
	}
	if least < 0 {
		t.Errorf("%s came back %v before it was to", name, -least)
	}
	if c.retried {
		t.Logf("%-20s refused %d times, came back %v after it was allowed", name, len(refused), least)
	} else {
		t.Logf("%-20s refused once, gave up", name)
	}
}

// times returns how often an item came.
func (s *sink) times(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id]
}
