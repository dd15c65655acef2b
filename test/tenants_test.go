// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
)

// offence is what a tenant does that is refused on its own account.
type offence struct {
	tenant, terms string // what it may, in YAML
	working       batch  // of it, at work meanwhile, if it has items
	first         bool   // one batch comes before
	breaches      int    // so many do that are too large
	batch         batch
	protocols     []protocol // nil: gRPC
	want          told
}

// told is what a client must be told.
type told struct {
	reason   string
	code     codes.Code
	http     int
	wait     time.Duration // until it is worth another try, from the beginning on; 0: the client is not told
	observed int64         // 0: more than the limit
	limit    int64
	unit     string
	message  string // after the reason
}

const share = 8 * mib // a quarter of the pool

// breach is a batch of more items than any of them may send who may not send as many as they like.
var breach = items(11, "many")

// offences has every reason that concerns tenants, once. The figures in messages come from ErrorInfo.
var offences = []offence{
	{
		tenant: "acme", terms: "{max_concurrent: 1}", working: one("held by acme", 0), batch: one("second", 0),
		want: told{
			"tenant_concurrency", codes.Unavailable, 503, time.Second, 1, 1, "{batch}",
			"{observed} batches of this tenant are at work or waiting and max_concurrent is {limit}: send it again later",
		},
	},
	{
		tenant: "globex", terms: "{memory_fraction: 0.25}", working: one("held by globex", middling), batch: one("second", middling),
		want: told{
			"tenant_memory", codes.Unavailable, 503, time.Second, 0, share, "By",
			"this tenant would have {observed} bytes in memory and its share is {limit} for now: send it again later",
		},
	},
	{
		tenant: "initech", terms: "{memory_fraction: 0.25}", batch: one("never", heavy),
		want: told{
			"memory_limit", codes.InvalidArgument, 400, 0, 0, share, "By",
			"the batch needs {observed} bytes of memory and can have {limit} at most, so it can never fit: send smaller batches",
		},
	},
	{
		tenant: "umbrella", terms: "{max_batch_memory: 1MiB}", batch: one("large", 2*mib),
		want: told{
			"batch_memory", codes.InvalidArgument, 400, 0, 0, mib, "By",
			"the batch takes {observed} bytes of memory and max_batch_memory is {limit}: send smaller batches",
		},
	},
	{
		tenant: "hooli", terms: "{max_batch_items: 10}", batch: breach,
		want: told{
			"batch_items", codes.InvalidArgument, 400, 0, 11, 10, "{item}",
			"the batch has {observed} items and max_batch_items is {limit}: send smaller batches",
		},
	},
	{
		tenant: "tyrell", terms: "{rate: {items_per_second: 5}}", batch: breach, // in 2 s
		want: told{
			"rate_burst", codes.InvalidArgument, 400, 0, 11, 10, "{item}",
			"the batch counts {observed} items and the rate's burst is {limit}, so it can never pass: send smaller batches",
		},
	},
	{
		tenant: "cyberdyne", terms: "{rate: {requests_per_second: 0.1}}", batch: one("second", 0), protocols: protocols,
		first: true,
		want: told{
			"tenant_rate", codes.ResourceExhausted, 429, 10 * time.Second, 1, 1, "{request}",
			"the batch counts {observed} requests and this tenant's rate, with a burst of {limit}, has not that many left: send it again later",
		},
	},
	{
		tenant: "soylent", terms: "{max_batch_items: 10, breaker: {cooldown: 20s}}", batch: one("harmless", 0), protocols: protocols,
		breaches: 8,
		want: told{
			"tenant_breaker", codes.Unavailable, 503, 20 * time.Second, 8, 8, "{batch}",
			"{observed} batches of this tenant were too large or did harm, and {limit} shut it out for a while: mend them, then send again later",
		},
	},
	{
		tenant: "weyland", batch: one("anything", 0), protocols: protocols, // not on the list
		want: told{"tenant_unknown", codes.PermissionDenied, 403, 0, 0, 0, "", "this tenant is not one of those allowed"},
	},
}

// neighbor is beside all of them.
const neighbor = "wonka"

// underTerms puts the tenants of the offences under their terms, and allows nobody else but the neighbor.
func underTerms() string {
	allow, overrides := []string{neighbor}, []string{}
	for _, o := range offences {
		if o.terms != "" {
			allow, overrides = append(allow, o.tenant), append(overrides, o.tenant+": "+o.terms)
		}
	}
	return fmt.Sprintf("extensions::governor::tenants: {allow: [%s], overrides: {%s}}",
		strings.Join(allow, ", "), strings.Join(overrides, ", "))
}

// TestEveryReasonThatConcernsTenantsIsTold raises every one, for tenants that are named in each way, while a
// neighbor is served as if nothing happened.
func TestEveryReasonThatConcernsTenantsIsTold(t *testing.T) {
	t.Parallel()
	tellEveryReason(t)
}

func tellEveryReason(t *testing.T, yaml ...string) {
	for name, way := range map[string]func(*testing.T) naming{
		"by header": byHeader, "by authentication": byAuthentication, "by resource": byResource,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, by := startSink(t), way(t)
			c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(append(by.yaml, underTerms()), yaml...)})
			beside, served := tenant{c, neighbor, by}, 0
			for _, o := range offences {
				o.commit(t, s, tenant{c, o.tenant, by}, func() {
					wantAccepted(t, beside.send(protocols[served%len(protocols)], traces, one(fmt.Sprint("served ", served), 0)))
					served++
				})
			}
			if n := c.scrape().sum("otelcol_governor_tenant_breakers_open"); n != 1 {
				t.Errorf("%d breakers are open, want 1", n)
			}
			s.wantOnce(append(numbered("served", served), "first", "held by acme", "held by globex"))
			c.wantIdle()
		})
	}
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(prefix, " ", i)
	}
	return ids
}

// commit does what is refused and checks the answers. Meanwhile and afterwards it calls on others.
func (o offence) commit(t *testing.T, s *sink, c tenant, others func()) {
	t.Helper()
	began := time.Now()
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
	if o.protocols == nil {
		o.protocols = []protocol{grpcProtocol}
	}
	before := c.refusals(o.want.reason)
	for _, p := range o.protocols {
		a := c.send(p, traces, o.batch)
		o.want.check(t, a, o.want.wait-time.Since(began))
	}
	if n := c.refusals(o.want.reason) - before; n != int64(len(o.protocols)) {
		t.Errorf("%d refusals for %s, want %d", n, o.want.reason, len(o.protocols))
	}
	others()
	s.release(h)
	if len(o.working.ids) > 0 {
		wantAccepted(t, <-working)
	}
	others()
}

// check compares an answer with what was to be told, to wait so long at least.
func (w told) check(t *testing.T, a answer, wait time.Duration) {
	t.Helper()
	if a.status.Code() != w.code || a.reason() != w.reason || a.http != 0 && a.http != w.http {
		t.Errorf("want %v or %d for %s: %v", w.code, w.http, w.reason, a)
		return
	}
	w.checkFigures(t, a)
	for _, o := range append(offences, offence{tenant: neighbor}) {
		if strings.Contains(a.String(), o.tenant) {
			t.Errorf("the client is told of %s: %v", o.tenant, a)
		}
	}
	delay, delayed := a.delay()
	if w.wait == 0 {
		if delayed || a.retryAfter != "" {
			t.Errorf("want no delay: %v", a)
		}
		return
	}
	if !delayed || delay < max(wait, time.Second) || delay > 30*time.Second {
		t.Errorf("told to wait for %v, want %v to 30s: %v", delay, max(wait, time.Second), a)
	}
	seconds := int(delay.Seconds()) // the receiver cuts them down, the door rounds them up
	if a.http != 0 && a.retryAfter != strconv.Itoa(seconds) && a.retryAfter != strconv.Itoa(seconds+1) {
		t.Errorf("want the whole seconds of %v as Retry-After: %v", delay, a)
	}
}

// checkFigures looks at the message, and at the figures beside it.
func (w told) checkFigures(t *testing.T, a answer) {
	t.Helper()
	figures := map[string]string{}
	for _, d := range a.status.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			figures = info.Metadata
		}
	}
	observed, _ := strconv.ParseInt(figures["observed"], 10, 64)
	limit, _ := strconv.ParseInt(figures["limit"], 10, 64)
	enough := observed == w.observed || w.observed == 0 && observed > w.limit
	if limit != w.limit || figures["unit"] != w.unit || !enough {
		t.Errorf("want %d of %d in %s: %v", w.observed, w.limit, w.unit, a)
	}
	message := w.reason + ": " + strings.NewReplacer(
		"{observed}", figures["observed"], "{limit}", figures["limit"]).Replace(w.message)
	if a.status.Message() != message {
		t.Errorf("message\n%s\nwant\n%s", a.status.Message(), message)
	}
}
