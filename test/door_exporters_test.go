// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"testing"
)

// TestStockExportersHeedEveryReasonOfATenantAtTheDoor has both exporters commit every offence, one by one, against a
// door. They come back with what may pass later, not before they were told to, and drop the rest.
func TestStockExportersHeedEveryReasonOfATenantAtTheDoor(t *testing.T) {
	for _, o := range offences {
		for _, sig := range bySignal {
			t.Run(o.want.reason+" "+sig.name, func(t *testing.T) {
				t.Parallel()
				o.commitBy(t, sig)
			})
		}
	}
}

// commitBy has the exporter of a signal commit the offence.
func (o offence) commitBy(t *testing.T, sig signal) {
	s, by := startSink(t), byHeader(t)
	back := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, underTerms(), atTheDoor)})
	header := "::headers: {" + headerName + ": " + o.tenant + "}"
	front := before(t, back, "exporters::otlp_grpc"+header, "exporters::otlp_http"+header)
	c := tenant{back, o.tenant, by}
	h, working := s.holdOf("held"), make(<-chan answer)
	if len(o.working.ids) > 0 {
		working = c.sending(grpcProtocol, traces, o.working)
		s.wantArrival(h)
	}
	if o.first {
		wantAccepted(t, c.send(grpcProtocol, traces, one("first", 0)))
	}
	for range o.breaches {
		wantNever(t, c.send(grpcProtocol, traces, breach), "batch_items")
	}
	wantAccepted(t, front.send(grpcProtocol, sig, o.batch))
	eventually(t, "the exporter is refused", func() bool { return back.refusals(o.want.reason) > 0 })
	s.release(h)
	if len(o.working.ids) > 0 {
		wantAccepted(t, <-working)
	}
	if o.want.wait > 0 {
		eventually(t, "it comes back", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.seen[o.batch.ids[0]] > 0
		})
	} else if l := front.wantLine("Exporting failed. Dropping data."); l.bytes("dropped_items") < 1 {
		t.Errorf("the exporter says %v", l)
	}
	front.terminate() // whatever it still has, it sends now
	most := int64(1)
	if len(o.working.ids) > 0 {
		most = 2 // it may have been told a second before what it waits for is over
	}
	if n := back.refusals(o.want.reason); n > most {
		t.Errorf("the exporter was refused %d times, want %d at most: it was told how long to wait", n, most)
	}
	back.wantNothingLeft()
}
