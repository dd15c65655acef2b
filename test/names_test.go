// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// nobody sends batches that do not say whose they are.
func nobody(c *collector) tenant { return tenant{c, "", naming{}} }

// tight are ceilings of everybody.
const tight = "extensions::governor::tenants::defaults: {max_concurrent: 2, max_batch_items: 10, breaker: {breaches: unlimited}}"

// TestNoNameEscapesNoCeiling leaves the header out, leaves it empty, and calls itself what the governor calls
// those who do that.
func TestNoNameEscapesNoCeiling(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byHeader(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, tight)})
	several := by
	several.sign = func(ctx context.Context, name string) context.Context { return by.sign(by.sign(ctx, name), name) }
	for how, client := range map[string]tenant{
		"no header":     nobody(c),
		"an empty one":  {c, "", by},
		"empty ones":    {c, "", several},
		"default":       {c, "default", by},
		"the overflow":  {c, "_overflow", by},
		"another name":  {c, "acme", by},
		"several names": {c, "acme", several},
	} {
		h := s.holdOf("held")
		wantNever(t, client.send(grpcProtocol, traces, items(11, "many")), "batch_items")
		one1 := client.sending(grpcProtocol, traces, one("held 1, "+how, 0))
		one2 := client.sending(protocols[1], traces, one("held 2, "+how, 0))
		s.wantArrival(h)
		s.wantArrival(h)
		for _, p := range protocols {
			wantLater(t, client.send(p, traces, one("third", 0)), "tenant_concurrency")
		}
		s.release(h)
		wantAccepted(t, <-one1)
		wantAccepted(t, <-one2)
	}
	c.wantIdle()
}

// TestInventedNamesShareCeilings invents more names than there is room for: those that find none are one
// tenant, whichever name comes next.
func TestInventedNamesShareCeilings(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byHeader(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml, tight,
		"extensions::governor::tenants: {max_tracked: 5, overrides: {acme: {}}, defaults: {rate: {requests_per_second: 0.05, burst: 1m}}}")})
	invented := 0
	invent := func() tenant { invented++; return tenant{c, fmt.Sprint("invented-", invented), by} }
	for range 4 { // beside acme, whose place is kept
		wantAccepted(t, invent().send(grpcProtocol, traces, one("with room", 0)))
	}
	h := s.holdOf("held")
	one1 := invent().sending(grpcProtocol, traces, one("held 1", 0))
	one2 := invent().sending(grpcProtocol, traces, one("held 2", 0))
	s.wantArrival(h)
	s.wantArrival(h)
	for range 3 {
		wantLater(t, invent().send(grpcProtocol, traces, one("too many", 0)), "tenant_concurrency")
	}
	acme := tenant{c, "acme", by}
	wantAccepted(t, acme.send(grpcProtocol, traces, one("of acme", 0)))
	s.release(h)
	wantAccepted(t, <-one1)
	wantAccepted(t, <-one2)

	wantAccepted(t, invent().send(grpcProtocol, traces, one("the last of three", 0))) // refused ones cost nothing
	for range 3 {
		wantRate(t, invent().send(grpcProtocol, traces, one("too often", 0)))
	}
	wantAccepted(t, acme.send(grpcProtocol, traces, one("of acme, again", 0)))
	m := c.scrape()
	if count, limit := m.sum("otelcol_governor_tenant_count"), m.sum("otelcol_governor_tenant_limit"); count != 5 || limit != 5 {
		t.Errorf("%d tenants of %d, want 5 of 5", count, limit)
	}
}

// TestComingBackRefundsNothing has a tenant use up its rate and stay away until others are forgotten.
func TestComingBackRefundsNothing(t *testing.T) {
	t.Parallel()
	s, by := startSink(t), byHeader(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml,
		"extensions::governor::tenants: {idle_timeout: 1s, overrides: {acme: {rate: {requests_per_second: 0.01}}}}")})
	acme := tenant{c, "acme", by}
	wantAccepted(t, acme.send(grpcProtocol, traces, one("first", 0)))
	for n := range 3 {
		wantAccepted(t, tenant{c, fmt.Sprint("passing-", n), by}.send(grpcProtocol, traces, one("other", 0)))
	}
	eventually(t, "the others are forgotten", func() bool { return c.scrape().sum("otelcol_governor_tenant_count") == 1 })
	wantRate(t, acme.send(grpcProtocol, traces, one("second", 0)))
}

// wantRate checks that a batch was refused for its tenant's rate.
func wantRate(t *testing.T, a answer) {
	t.Helper()
	if delay, ok := a.delay(); a.status.Code() != codes.ResourceExhausted || a.reason() != "tenant_rate" || !ok || delay < time.Second {
		t.Errorf("want ResourceExhausted for tenant_rate with a RetryInfo of 1s at least: %v", a)
	}
}

// TestHostileNamesAreShownHarmless uses names that would like to be more than a name in a log. HTTP/2 and
// gRPC's client let through less in headers than HTTP/1.1, and resources let through everything. The log is
// not sampled, since a Collector as it comes shows ten lines of one message in ten seconds.
func TestHostileNamesAreShownHarmless(t *testing.T) {
	t.Parallel()
	header, resource := byHeader(t), byResource(t)
	long := strings.Repeat("long", 10000)
	// A summary names eight tenants at most.
	for group := range slices.Chunk([]hostile{
		{header, grpcProtocol, `quo"te'd`, `quo"te'd`},
		{header, grpcProtocol, `back\nslash`, `back\\nslash`},
		{header, grpcProtocol, `{"level":"error"}`, `{"level":"error"}`},
		{header, grpcProtocol, "4:acme", "6:4:acme"},
		{header, protocols[1], "tab\tbed", `tab\tbed`},
		{header, protocols[1], "ünïcödé", "ünïcödé"},
		{header, protocols[1], "not\xffutf8", `not\xffutf8`},
		{resource, grpcProtocol, "two\n{\"level\":\"error\"}\r\nlines", `two\n{"level":"error"}\r\nlines`},
		{resource, grpcProtocol, "\x1b[31mred\x00", `\x1b[31mred\x00`},
		{resource, protocols[1], "dlrow\u202eworld", `dlrow\u202eworld`},
		{resource, grpcProtocol, "default", "7:default"},
		{resource, grpcProtocol, "_overflow", "9:_overflow"},
		{resource, grpcProtocol, "_other", "6:_other"},
		{resource, grpcProtocol, long, ""}, // its beginning and a hash
	}, 7) {
		t.Run("", func(t *testing.T) { showHostile(t, append(slices.Clone(header.yaml), resource.yaml...), group) })
	}
}

// hostile is a name, how and over what it is sent, and how it is shown; empty: its beginning and a hash.
type hostile struct {
	by          naming
	p           protocol
	name, shown string
}

// showHostile has batches of these tenants refused, and looks at telemetry and log.
func showHostile(t *testing.T, yaml []string, names []hostile) {
	s := startSink(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(yaml,
		"extensions::governor: {telemetry: {tenants: top}, tenants: {defaults: {max_batch_items: 10}}}",
		"service::telemetry::logs::sampling::enabled: false")})
	began, shown, longs := time.Now(), map[string]bool{}, 0
	h := s.holdOf("held")
	var working []<-chan answer
	for n, k := range names {
		client := tenant{c, k.name, k.by}
		for range 3 {
			a := client.send(k.p, traces, items(11, "many"))
			wantNever(t, a, "batch_items")
			if strings.Contains(a.String(), k.name) {
				t.Errorf("the client is told its name: %v", a)
			}
		}
		working = append(working, client.sending(k.p, traces, one(fmt.Sprint("held ", n), 0)))
		s.wantArrival(h)
		if k.shown == "" {
			longs++
		} else {
			shown[k.shown] = true
		}
	}
	m := c.scrape()
	for name := range shown {
		label := "governor_tenant=" + name
		if n := m.sum("otelcol_governor_tenant_concurrency_usage", label); n != 1 {
			t.Errorf("%s has %d batches at work by telemetry, want 1", label, n)
		}
	}
	s.release(h)
	for _, w := range working {
		wantAccepted(t, <-w)
	}
	c.terminate()
	lines := map[string]int{}
	for _, l := range c.log.all(message("Batches were refused")) {
		name := l.text("tenant")
		lines[name]++
		if !shown[name] && !(strings.HasPrefix(name, "longlong") && len(name) == 256) {
			t.Errorf("who is %q in %v?", name, l)
		}
	}
	if len(lines) != len(shown)+longs {
		t.Errorf("the log tells of %v, want %v and %d long ones", lines, shown, longs)
	}
	for name, n := range lines {
		if most := 1 + int(time.Since(began)/(10*time.Second)); n > most {
			t.Errorf("%d lines about %s, want one for each interval, which is %d at most", n, name, most)
		}
	}
	c.wantSummaries(int64(3 * len(lines)))
	if odd := c.log.all(func(l line) bool { return l.text("msg") == "" }); len(odd) > 0 {
		t.Errorf("these lines are somebody else's: %v", odd)
	}
}
