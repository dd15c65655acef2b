// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// atTheDoor puts the governor in front of the receivers too.
const atTheDoor = `
receivers::otlp::protocols::grpc::middlewares: [{id: governor}]
receivers::otlp::protocols::http::middlewares: [{id: governor}]`

// refusalsIn returns how many batches were refused for a reason in a phase: header, wire, or batch once decoded.
func (c *collector) refusalsIn(phase, reason string) int64 {
	c.t.Helper()
	return c.scrape().sum("otelcol_governor_batch_duration", "governor_phase="+phase, "error_type="+reason)
}

// wantNothingLeft waits until nobody holds anything, on the wire neither.
func (c *collector) wantNothingLeft() {
	c.t.Helper()
	c.wantIdle()
	eventually(c.t, "nothing is on its way in", func() bool { return c.scrape().sum("otelcol_governor_wire_usage") == 0 })
}

// TestTheSameCapIsToldAtTheDoorOverEveryProtocol sends every signal over every protocol, more items than may be and
// more memory than may be.
func TestTheSameCapIsToldAtTheDoorOverEveryProtocol(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: []string{
		atTheDoor, "extensions::governor::admission: {max_batch_items: 10000, max_batch_memory: 4MiB}",
	}})
	want := "batch_items: the batch has 10001 items and max_batch_items is 10000: send smaller batches"
	for _, p := range protocols {
		for _, sig := range signals {
			a := c.send(p, sig, batch{ids: make([]string, 10001)})
			wantNever(t, a, "batch_items")
			if a.status.Message() != want {
				t.Errorf("%s over %s: %s", sig.name, p.name, a.status.Message())
			}
			wantNever(t, c.send(p, sig, one("large", 6*mib)), "batch_memory")
			wantAccepted(t, c.send(p, sig, one(fmt.Sprint(p.name, sig.name), mib)))
		}
	}
	all := int64(len(protocols) * len(signals))
	for _, reason := range []string{"batch_items", "batch_memory"} {
		if n, of := c.refusalsIn("wire", reason), c.refusals(reason); n != all || of != all {
			t.Errorf("%s: %d of %d refused undecoded, want %d", reason, n, of, all)
		}
	}
	c.wantNothingLeft()
}

// TestALowerLimitBehindTheDoorRefusesWhatWasLetIn has a limiter that allows less than the governor.
func TestALowerLimitBehindTheDoorRefusesWhatWasLetIn(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: []string{
		atTheDoor, `
processors::limiter/narrow::limits: {max_batch_items: 10}
service::pipelines::logs::processors: [limiter/narrow]
service::pipelines::traces::processors: [limiter/narrow]`,
	}})
	for _, p := range protocols {
		for _, sig := range bySignal {
			wantNever(t, c.send(p, sig, items(11, "many")), "batch_items")
			wantAccepted(t, c.send(p, sig, items(10, p.name+" "+sig.name)))
		}
		wantAccepted(t, c.send(p, metrics, items(11, p.name)))
	}
	if n := c.refusalsIn("batch", "batch_items"); n != int64(2*len(protocols)) || n != c.refusals("batch_items") {
		t.Errorf("%d refused once decoded, want %d", n, 2*len(protocols))
	}
	c.wantNothingLeft()
}

// TestEveryReasonThatConcernsTenantsIsToldAtTheDoor is the story of the limiter with a door in front, where tenants
// are known before anything is decoded, and where they are not.
func TestEveryReasonThatConcernsTenantsIsToldAtTheDoor(t *testing.T) {
	t.Parallel()
	tellEveryReason(t, atTheDoor)
}

// TestAPackedMessageIsHeldToWhatTheReceiverTakes sends in gzip, which the door unpacks in place of grpc, what is within
// max_recv_msg_size_mib and what is beyond it.
func TestAPackedMessageIsHeldToWhatTheReceiverTakes(t *testing.T) {
	t.Parallel()
	c := start(t, setup{config: "governed.yaml", sink: startSink(t), profiles: true, yaml: []string{
		atTheDoor, "receivers::otlp::protocols::grpc::max_recv_msg_size_mib: 1",
	}})
	conn, err := c.dial(grpc.UseCompressor("gzip"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(size int) answer {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := logs.make(batch{ids: []string{strings.Repeat("a", size)}})
		return answer{status: status.Convert(logs.send(ctx, conn, r))}
	}
	wantAccepted(t, send(900_000))
	a := send(2_000_000)
	if a.status.Code() != codes.ResourceExhausted || !strings.Contains(a.status.Message(), "larger than max 1048576") {
		t.Errorf("want ResourceExhausted for its size: %v", a)
	}
	if _, later := a.delay(); later {
		t.Errorf("want no delay: %v", a)
	}
	c.wantNothingLeft()
}
