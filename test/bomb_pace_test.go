// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// TestBombsKillWhoIsNotGoverned has a neighbor send a tenth of what the machine can take, however slow that is, beside
// bombs: before memory_limiter and before the governor.
func TestBombsKillWhoIsNotGoverned(t *testing.T) {
	alone := besideBombs(5 * time.Second)
	alone.Name, alone.Neighbor.PerSecond, alone.Offender = "alone, as fast as it can", 0, bomb.Load{}
	most := contend(t, alone)
	t.Logf("\n%s\n%v", bomb.Heading, most)

	governed := besideBombs(20 * time.Second)
	governed.Name = "governor"
	governed.Neighbor.PerSecond = max(1, min(50, most.Neighbor.Answers[bomb.Accepted]/int(alone.Lasts.Seconds())/10))
	limited := governed
	limited.Name, limited.YAML = "memory_limiter", []string{bomb.MemoryLimiter}

	before, row := contend(t, limited), contend(t, governed)
	t.Logf("%d batches a second:\n%s\n%v\n%v", governed.Neighbor.PerSecond, bomb.Heading, before, row)
	if before.Kills == 0 {
		t.Error("memory_limiter: no OOM kill, so this shows nothing")
	}
	wantUnharmed(t, row)
	wantBreaker(t, row, true)
}
