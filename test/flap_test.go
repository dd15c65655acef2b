// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// TestLoadAroundAThresholdDoesNotFlap has a batch hold much of a pool for half a minute, and others come and go, at
// odd times, that take it above the threshold of elevated. Health is none of it.
func TestLoadAroundAThresholdDoesNotFlap(t *testing.T) {
	const flapping, hold = 30 * time.Second, time.Second
	s, endpoint := startSink(t), freeAddress(t)
	c := start(t, setup{
		config: "gateway.yaml", sink: s,
		yaml: []string{straight, "extensions::governor: {memory: {pool_size: 64MiB}, admission: {processing_timeout: 0s}}", fmt.Sprintf(healthy, endpoint)},
	})
	h := s.holdOf("held")
	held := c.sending(grpcProtocol, traces, one("held", 38*mib)) // of 64, where elevated is from 54 on
	s.wantArrival(h)
	told := map[readiness]bool{}
	swings, random := 0, rand.New(rand.NewPCG(1, 2))
	for began := time.Now(); time.Since(began) < flapping; swings++ {
		s.delay(time.Duration(random.Int64N(int64(hold))))
		if a := c.send(grpcProtocol, traces, one(fmt.Sprint("swing ", swings), 20*mib)); a.status.Code() != codes.OK {
			wantLater(t, a, "memory_contended") // beside what is left of the last
		}
		told[ready(t, endpoint)] = true
		<-time.After(time.Duration(random.Int64N(int64(3 * hold))))
	}
	s.release(h)
	wantAccepted(t, <-held)
	turns := c.turns()
	t.Logf("%d swings in %v: %d changes of level", swings, flapping, len(turns))
	if len(turns) == 0 {
		t.Error("the level never changed, so nothing was shown")
	}
	if most := int(flapping/hold) + 1; len(turns) > most {
		t.Errorf("%d changes of level in %v, want %d at most", len(turns), flapping, most)
	}
	for i, l := range turns {
		if i > 0 && l.text("to") == "ok" && l.time(t).Sub(turns[i-1].time(t)) < hold {
			t.Errorf("a level lasted less than its hold: %v", l)
		}
	}
	if len(told) != 1 {
		t.Errorf("status events without a transition of health: %v", told)
	}
}
