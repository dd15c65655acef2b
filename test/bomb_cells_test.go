// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// TestBombsOfEveryKindLeaveTheNeighborAlone puts offenders and neighbors of several kinds before a governed
// collector for a minute each, before one that memory_limiter protects, and lets the neighbor be alone. A
// neighbor waits a third, at the 99th percentile, of what it waits behind memory_limiter.
func TestBombsOfEveryKindLeaveTheNeighborAlone(t *testing.T) {
	for _, size := range []int{162_000, 324_000} {
		alone := besideBombs(20 * time.Second)
		alone.Name, alone.Neighbor.Size, alone.Offender = fmt.Sprintf("%d kB alone", size/1000), size, bomb.Load{}
		t.Logf("\n%s\n%v", bomb.Heading, contend(t, alone))
		for _, of := range []struct {
			bombs int
			each  int // a second
		}{{tooLarge, 0}, {tooLarge, 60}, {fits, 0}, {fits, 60}} {
			pace := "as fast as they can"
			if of.each > 0 {
				pace = fmt.Sprint(of.each, " a second")
			}
			t.Run(fmt.Sprintf("%d kB beside bombs of %d MB %s", size/1000, of.bombs/1_000_000, pace), func(t *testing.T) {
				o := besideBombs(time.Minute)
				o.Neighbor.Size, o.Offender.Size, o.Offender.PerSecond = size, of.bombs, of.each
				beside(t, o, of.bombs == tooLarge)
			})
		}
	}
}

// TestBombsInEveryPayloadLeaveTheNeighborAlone sends bombs in the other ways.
func TestBombsInEveryPayloadLeaveTheNeighborAlone(t *testing.T) {
	for _, k := range []struct {
		protocol bomb.Protocol
		payload  bomb.Payload
		breaker  bool
	}{
		{bomb.GRPC, bomb.Bare, true},
		{bomb.GRPC, bomb.Logs, false}, // 68 MB, which fit
		{bomb.GRPC, bomb.Metrics, true},
		{bomb.GRPC, bomb.Nested, false}, // too deep to be OTLP, so it is no tenant's breach
		{bomb.HTTP, bomb.Spans, true},
		{bomb.HTTPGzip, bomb.Spans, true},
		{bomb.JSON, bomb.Spans, true},
		{bomb.HTTP, bomb.Nested, false},
		{bomb.JSON, bomb.Nested, false},
	} {
		t.Run(fmt.Sprint(k.protocol, " ", k.payload), func(t *testing.T) {
			o := besideBombs(time.Minute)
			o.Offender.Protocol, o.Offender.Payload = k.protocol, k.payload
			if k.protocol != bomb.GRPC {
				o.Neighbor.Protocol = bomb.HTTP
			}
			beside(t, o, k.breaker)
		})
	}
}

// beside holds a contest with memory_limiter and with the governor, and compares. The offender's breaker opens, or
// does not.
func beside(t *testing.T, o bomb.Contest, breaker bool) {
	t.Helper()
	o.Name = "governor"
	limiter := o
	limiter.Name, limiter.YAML, limiter.Lasts = "memory_limiter", []string{bomb.MemoryLimiter}, 20*time.Second
	before, row := contend(t, limiter), contend(t, o)
	t.Logf("\n%s\n%v\n%v", bomb.Heading, before, row)
	wantUnharmed(t, row)
	wantBreaker(t, row, breaker)
	if p99, theirs := row.Neighbor.Quantile(0.99), before.Neighbor.Quantile(0.99); 3*p99 > theirs {
		t.Errorf("the neighbor's p99 is %v, want a third at most of memory_limiter's %v", p99, theirs)
	}
}
