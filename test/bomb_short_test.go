// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// bombLimit is the memory of a collector that faces bombs.
const bombLimit = 256 * mib

// The sizes of bombs and what they are in memory: more than a batch may be where the limit is 256 MiB, and what
// fits once or twice.
const (
	tooLarge = 4_000_000 // 87 MB
	fits     = 2_000_000 // 43 MB
)

// reasons are what an offender may be told. What cannot be decoded is not refused, and its answer names none.
var reasons = []string{
	"batch_memory", "memory_limit", "memory_contended", "memory_pressure", "queue_full", "queue_timeout", "body_timeout",
	"tenant_breaker", "tenant_concurrency", "tenant_memory", "InvalidArgument",
}

// besideBombs is 16 clients that send bombs as fast as they are answered, beside a neighbor of 50 usual batches
// a second, for so long.
func besideBombs(lasts time.Duration) bomb.Contest {
	return bomb.Contest{
		YAML: []string{bomb.Governor}, Limit: bombLimit, Lasts: lasts,
		Neighbor: bomb.Load{
			Tenant: "neighbor", Protocol: bomb.GRPC, Payload: bomb.Usual, Size: 162_000,
			Clients: 1, PerSecond: 50, Deadline: patience,
		},
		Offender: bomb.Load{
			Tenant: "offender", Protocol: bomb.GRPC, Payload: bomb.Spans, Size: tooLarge,
			Clients: 16, Deadline: 10 * time.Second, Nice: 10,
		},
	}
}

// contend holds a contest.
func contend(t *testing.T, o bomb.Contest) bomb.Row {
	t.Helper()
	if err := bomb.NoCgroup(); err != nil {
		t.Skipf("skipped, not passed: no cgroup can be made here: %v", err)
	}
	o.Binary = collectorBinary(t)
	row, err := o.Hold()
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// wantUnharmed checks that a governed collector and the neighbor have come to no harm, and that the offender was
// told why not. Who does not hear refusals, and has as many calls under way as there is room for, may find one
// canceled now and then.
func wantUnharmed(t *testing.T, row bomb.Row) {
	t.Helper()
	if row.Kills != 0 || row.Ends != 0 {
		t.Errorf("%d OOM kills and %d ends, want none", row.Kills, row.Ends)
	}
	if most := int64(bombLimit) / 100 * 95; row.Peak > most {
		t.Errorf("the cgroup's peak was %d, want %d at most", row.Peak, most)
	}
	if row.Neighbor.Answers[bomb.Accepted] != row.Neighbor.Sent || row.Neighbor.Sent == 0 {
		t.Errorf("the neighbor was answered %v", row.Neighbor.Answers)
	}
	told := row.Offender.Answers[bomb.Accepted]
	for _, reason := range reasons {
		told += row.Offender.Answers[reason]
	}
	untold := row.Offender.Sent - told
	if canceled := row.Offender.Answers["Canceled"]; untold != canceled || canceled > row.Offender.Sent/100 {
		t.Errorf("the offender was answered %v, want reasons", row.Offender.Answers)
	}
}

// wantBreaker checks that the offender was shut out, or was not.
func wantBreaker(t *testing.T, row bomb.Row, open bool) {
	t.Helper()
	if n := row.Offender.Answers["tenant_breaker"]; (n > 0) != open {
		t.Errorf("the offender was told %d times that its breaker is open: %v", n, row.Offender.Answers)
	}
}

// TestBombsLeaveTheNeighborAlone has an offender send what would kill a collector that decodes it.
func TestBombsLeaveTheNeighborAlone(t *testing.T) {
	row := contend(t, besideBombs(10*time.Second))
	t.Logf("\n%s\n%v", bomb.Heading, row)
	// Beside other tests on the same processors a neighbor may wait for too long now and then; it is the long
	// stories, which have the machine to themselves, that ask for every batch.
	if few := row.Neighbor.Sent / 20; row.Neighbor.Sent-row.Neighbor.Answers[bomb.Accepted] <= few {
		row.Neighbor.Answers[bomb.Accepted] = row.Neighbor.Sent
	}
	// What waits for a processor piles up, and more calls than a few are canceled for that.
	if canceled := row.Offender.Answers["Canceled"]; canceled <= row.Offender.Sent/20 {
		row.Offender.Sent -= canceled
		delete(row.Offender.Answers, "Canceled")
	}
	wantUnharmed(t, row)
	wantBreaker(t, row, true)
}
