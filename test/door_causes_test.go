// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/raw"
)

// with has the configuration of a cause.
func with(yaml string) func(*testing.T, *scene) {
	return func(_ *testing.T, s *scene) { s.yaml = append(s.yaml, yaml) }
}

// held has a batch at work until the end.
func held(b batch) func(*testing.T, *scene) (again, end func()) {
	return func(t *testing.T, s *scene) (again, end func()) {
		h := s.sink.holdOf(b.ids[0])
		working := s.back.sending(grpcProtocol, traces, b)
		s.sink.wantArrival(h)
		return nil, func() {
			s.sink.release(h)
			wantAccepted(t, <-working)
		}
	}
}

// stalls fills what may be on its way in, from addresses that each take their part.
func stalls(t *testing.T, s *scene) (end func()) {
	var all []*raw.Client
	for n := range 5 {
		r := raw.Dial(t, s.back.grpc, fmt.Sprintf("127.0.8.%d", n+1))
		all = append(all, r)
		for range 100 {
			r.Send(t, r.Open(t, raw.TracesMethod), raw.Announced(mib), 5, false)
		}
		r.Heard(t)
	}
	return func() {
		for _, r := range all {
			r.Close(t)
		}
	}
}

// processWide are the causes that are no tenant's.
var processWide = []cause{
	{
		name: "too much memory in use", reason: "memory_contended", phase: "wire", retried: true, batch: one("", middling),
		set: with("extensions::governor::admission: {queue_timeout: 20ms, max_queued_fraction: 1}"), raise: held(one("held", filling)),
	},
	{
		name: "too much on its way in", reason: "memory_contended", retried: true, batch: one("", 0),
		set:   with("extensions::governor::admission::queue_timeout: 100ms"),
		raise: func(t *testing.T, s *scene) (again, end func()) { return nil, stalls(t, s) },
	},
	{
		name: "a full line", reason: "queue_full", phase: "wire", retried: true, batch: one("", 0),
		set: with("extensions::governor::admission: {max_concurrent: 1, max_queued: 1, queue_timeout: 1m}"),
		raise: func(t *testing.T, s *scene) (again, end func()) {
			_, release := held(one("held", 0))(t, s)
			waiting := s.back.sending(grpcProtocol, traces, one("waits", 0))
			s.back.wantWaiting(1)
			return nil, func() {
				release()
				wantAccepted(t, <-waiting)
			}
		},
	},
	{
		name: "no place in time", reason: "queue_timeout", phase: "wire", retried: true, batch: one("", 0),
		set: with("extensions::governor::admission: {max_concurrent: 1, queue_timeout: 20ms}"), raise: held(one("held", 0)),
	},
	{
		name: "memory pressure", reason: "memory_pressure", phase: "header", retried: true, batch: one("", 0),
		set: func(t *testing.T, s *scene) {
			s.cgroup, s.yaml = newCgroup(t, 512*mib), append(s.yaml, lowered)
		},
		raise: func(t *testing.T, s *scene) (again, end func()) {
			drop := s.cgroup.ballast(512 * mib / 10 * 7)
			eventually(t, "the level is critical", func() bool { return s.back.level() == 2 })
			return nil, drop
		},
	},
	{
		name: "a low disk", reason: "disk_low", phase: "header", retried: true, batch: one("", 0),
		set: func(t *testing.T, s *scene) {
			s.mounts = newMounts(t)
			s.disk = s.mounts.tmpfs(64*mib, 63*mib)
			s.yaml = append(s.yaml, fmt.Sprintf("extensions::governor::guard::disks: [{path: '%s'}]", s.disk))
		},
		raise: func(t *testing.T, s *scene) (again, end func()) {
			low := func() int64 { return s.back.scrape().sum("otelcol_governor_disk_low") }
			eventually(t, "the disk is low", func() bool { return low() == 1 })
			return nil, func() {
				seen := fmt.Sprintf("/proc/%d/root", s.back.cmd.Process.Pid) // by the process alone
				if err := os.Remove(filepath.Join(seen, s.disk, "taken")); err != nil {
					t.Error(err)
				}
				eventually(t, "the disk has space again", func() bool { return low() == 0 })
			}
		},
	},
	{
		name: "too many connections", reason: "connections", phase: "header", retried: true, protocol: "grpc", batch: one("", 0),
		set: with("extensions::governor::door::max_connections: 4"), // one for each client
		raise: func(t *testing.T, s *scene) (again, end func()) {
			var all []*raw.Client
			for range s.clients {
				r := raw.Dial(t, s.back.grpc, "127.0.0.1")
				all = append(all, r)
				r.Heard(t)
			}
			return nil, func() {
				for _, r := range all {
					r.Close(t)
				}
			}
		},
	},
	{
		name: "a slow body", reason: "body_timeout", retried: true, protocol: "http", batch: one("", mib),
		raise: func(t *testing.T, s *scene) (again, end func()) {
			moveOn, leave := s.witness.stall(), func() {}
			var once sync.Once
			again = func() {
				if s.back.scrape().sum("otelcol_governor_wire_usage") < int64(len(s.clients))*4<<10 {
					return // not all of them are being read
				}
				once.Do(func() {
					<-time.After(time.Second) // until they are slow; who finds no room then has them cut off
					leave = stalls(t, s)
				})
			}
			return again, func() {
				moveOn()
				leave()
			}
		},
	},
	{
		name: "processing that takes too long", reason: "processing_timeout", phase: "batch", retried: true, batch: one("", 0),
		set: with("extensions::governor::admission::processing_timeout: 200ms"),
		raise: func(_ *testing.T, s *scene) (again, end func()) {
			h := s.sink.hold()
			return nil, func() { s.sink.release(h) }
		},
	},
	{
		name: "a lower limit behind the door", reason: "batch_items", phase: "batch", batch: batch{ids: make([]string, 11)},
		set: with(`
processors::limiter::limits: {max_batch_items: 10}`),
	},
	{
		name: "the end of the process", reason: "shutting_down", retried: true, batch: one("", 0),
		set: with("extensions::governor::admission: {max_concurrent: 1, queue_timeout: 10m}"),
		raise: func(t *testing.T, s *scene) (again, end func()) {
			_, release := held(one("held", 0))(t, s)
			var once sync.Once
			again = func() {
				if m, err := s.back.tryScrape(); err == nil && m.sum("otelcol_governor_queue_usage") == int64(len(s.clients)) {
					once.Do(func() { s.back.signal(syscall.SIGHUP) })
				}
			}
			return again, release
		},
	},
}

// cause is an offence that all clients commit at once.
func (o offence) cause() cause {
	c := cause{name: "tenant", reason: o.want.reason, retried: o.want.wait > 0, tenant: o.tenant, batch: o.batch}
	c.set = func(t *testing.T, s *scene) { s.yaml = append(s.yaml, append(byHeader(t).yaml, underTerms())...) }
	if o.want.reason == "tenant_rate" { // one after the other must be let in within the patience of all
		c.set = func(t *testing.T, s *scene) {
			s.yaml = append(append(s.yaml, byHeader(t).yaml...),
				"extensions::governor::tenants::overrides: {"+o.tenant+": {rate: {requests_per_second: 1, burst: 1s}}}")
		}
	}
	c.raise = func(t *testing.T, s *scene) (again, end func()) {
		client := tenant{s.back, o.tenant, byHeader(t)}
		h, working := s.sink.holdOf("held"), make(<-chan answer)
		if len(o.working.ids) > 0 {
			working = client.sending(grpcProtocol, traces, o.working)
			s.sink.wantArrival(h)
		}
		if o.first {
			wantAccepted(t, client.send(grpcProtocol, traces, one("first", 0)))
		}
		for range o.breaches {
			wantNever(t, client.send(grpcProtocol, traces, breach), "batch_items")
		}
		return nil, func() {
			s.sink.release(h)
			if len(o.working.ids) > 0 {
				wantAccepted(t, <-working)
			}
		}
	}
	return c
}
