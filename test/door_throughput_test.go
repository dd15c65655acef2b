// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// TestThroughputStaysAsItWas has a neighbor send as fast as it is answered to a collector with door and limiter and
// to one with neither, in turn.
func TestThroughputStaysAsItWas(t *testing.T) { throughputStays(t, "") }

// TestThroughputOfPackedMessagesStaysAsItWas sends them as stock exporters do, whose default is gzip.
func TestThroughputOfPackedMessagesStaysAsItWas(t *testing.T) { throughputStays(t, "gzip") }

// throughputStays compares turns of 50 ms that follow each other: others who use the machine make it up to twice as
// slow, for longer than that. The collectors are started anew a few times, since each start makes one of them faster by
// a hundredth or two. What two that are alike differ by shows how much the figure is worth.
func throughputStays(t *testing.T, encoding string) {
	t.Helper()
	const starts, rounds, turn, goal = 8, 200, 50 * time.Millisecond, 0.97
	plain := besideBombs(turn)
	plain.Binary = collectorBinary(t)
	plain.YAML, plain.Offender = nil, bomb.Load{}
	plain.Neighbor.PerSecond, plain.Neighbor.Clients, plain.Neighbor.Encoding = 0, 4, encoding
	governed := plain
	governed.YAML = []string{bomb.Governor}
	var ratios, control []float64
	for range starts {
		turns, err := bomb.InTurn(rounds, governed, plain, plain)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			var speed [3]float64 // batches a second
			for j := range speed {
				if turn := turns[j][i]; turn.Share() == 1 {
					speed[j] = float64(turn.Sent) / turn.Lasted.Seconds()
				} else {
					t.Fatalf("the neighbor was answered %v", turn.Answers)
				}
			}
			ratios = append(ratios, speed[0]/speed[1], speed[0]/speed[2])
			control = append(control, speed[1]/speed[2])
		}
	}
	low, mid, high := interval(control)
	t.Logf("throughput of two without over each other: %.3f, 95 %% within %.3f to %.3f", mid, low, high)
	low, mid, high = interval(ratios)
	t.Logf("throughput with door and limiter over that without: %.3f, 95 %% within %.3f to %.3f", mid, low, high)
	if low < goal {
		t.Errorf("%.3f to %.3f, want %.2f", low, high, goal)
	}
}

// TestRefusingUndecodedCostsAFifth has a tenant send usual batches of too many items to a collector that refuses them
// at the door, and to one whose limiter does once they are decoded, in turn.
func TestRefusingUndecodedCostsAFifth(t *testing.T) {
	const pairs, most = 20, 0.2
	// cost returns what a refusal takes of the processor, in seconds, and of memory, in bytes allocated.
	cost := func(yaml ...string) (seconds, bytes float64) {
		o := besideBombs(2 * time.Second)
		o.YAML = append([]string{bomb.Governor, `
extensions::governor::admission::max_batch_items: 10
extensions::governor::tenants::defaults::breaker::breaches: 1000000`}, yaml...)
		o.Offender = o.Neighbor
		o.Neighbor, o.Offender.PerSecond, o.Offender.Size = bomb.Load{}, 50, 1_000_000
		o.Beside = func(bc *bomb.Collector) (func() error, error) {
			c := &collector{t: t, metricsServer: bc.Metrics}
			before, err := c.tryScrape()
			return func() error {
				after, failed := c.tryScrape()
				spent := func(name string) float64 { return after.value(name) - before.value(name) }
				n := float64(after.sum("otelcol_governor_batch_duration", "error_type=batch_items"))
				seconds = spent("otelcol_process_cpu_seconds") / n
				bytes = spent("otelcol_process_runtime_total_alloc_bytes") / n
				return failed
			}, err
		}
		if row := contend(t, o); row.Offender.Answers["batch_items"] != row.Offender.Sent {
			t.Errorf("the answers are %v", row.Offender.Answers)
		}
		return seconds, bytes
	}
	const noDoor = `
receivers::otlp::protocols::grpc::middlewares: []
receivers::otlp::protocols::http::middlewares: []`
	times, memory := make([]float64, pairs), make([]float64, pairs)
	for i := range pairs {
		doorTime, doorBytes := cost()
		limiterTime, limiterBytes := cost(noDoor)
		times[i], memory[i] = doorTime/limiterTime, doorBytes/limiterBytes
	}
	for what, ratios := range map[string][]float64{"time": times, "memory": memory} {
		low, mid, high := interval(ratios)
		t.Logf("%s of a refusal at the door over that of one after decoding: %.3f, 95 %% within %.3f to %.3f", what, mid, low, high)
		if low > most {
			t.Errorf("%s: %.3f to %.3f, want %.1f at most", what, low, high, most)
		}
	}
}

// interval returns the median and where it lies in 95 of 100 samples of the same size, drawn from the values.
func interval(values []float64) (low, mid, high float64) {
	median := func(of []float64) float64 {
		slices.Sort(of)
		return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
	}
	const draws = 2000
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, draws)
	for i := range medians {
		sample := make([]float64, len(values))
		for j := range sample {
			sample[j] = values[random.IntN(len(values))]
		}
		medians[i] = median(sample)
	}
	slices.Sort(medians)
	return medians[draws/40], median(slices.Clone(values)), medians[draws-draws/40]
}
