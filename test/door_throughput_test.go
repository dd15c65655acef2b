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

// throughputStays compares the fastest tenth of many short turns: others who use the machine make it up to twice as
// slow for seconds, but never faster. The collectors are started anew a few times, since each start makes one of them
// faster by a hundredth or two.
func throughputStays(t *testing.T, encoding string) {
	t.Helper()
	const starts, rounds, turn, goal = 8, 100, 100 * time.Millisecond, 0.97
	plain := besideBombs(turn)
	plain.Binary = collectorBinary(t)
	plain.Name, plain.YAML, plain.Offender = "neither", nil, bomb.Load{}
	plain.Neighbor.PerSecond, plain.Neighbor.Clients, plain.Neighbor.Encoding = 0, 4, encoding
	governed := plain
	governed.Name, governed.YAML = "door and limiter", []string{bomb.Governor}
	var speeds [][2]float64 // batches a second
	for range starts {
		turns, err := bomb.InTurn(rounds, governed, plain)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			var pair [2]float64
			for j := range pair {
				if turn := turns[j][i]; turn.Share() < 1 {
					t.Errorf("the neighbor was answered %v", turn.Answers)
				} else {
					pair[j] = float64(turn.Sent) / turn.Lasted.Seconds()
				}
			}
			speeds = append(speeds, pair)
		}
	}
	low, mid, high := interval(speeds, func(sample [][2]float64) float64 {
		return quantile(sample, 0, 0.9) / quantile(sample, 1, 0.9)
	})
	t.Logf("throughput with door and limiter over that without: %.3f, 95 %% within %.3f to %.3f", mid, low, high)
	if high < goal {
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
	var costs [][2]float64 // ratios of time and of memory
	for range pairs {
		doorTime, doorBytes := cost()
		limiterTime, limiterBytes := cost(noDoor)
		costs = append(costs, [2]float64{doorTime / limiterTime, doorBytes / limiterBytes})
	}
	for i, what := range []string{"time", "memory"} {
		low, mid, high := interval(costs, func(sample [][2]float64) float64 { return quantile(sample, i, 0.5) })
		t.Logf("%s of a refusal at the door over that of one after decoding: %.3f, 95 %% within %.3f to %.3f", what, mid, low, high)
		if low > most {
			t.Errorf("%s: %.3f to %.3f, want %.1f at most", what, low, high, most)
		}
	}
}

// interval returns the figure of the values and where it lies in 95 of 100 samples of as many, drawn from them.
func interval(values [][2]float64, figure func([][2]float64) float64) (low, mid, high float64) {
	const draws = 2000
	random := rand.New(rand.NewPCG(1, 2))
	figures := make([]float64, draws)
	sample := make([][2]float64, len(values))
	for i := range figures {
		for j := range sample {
			sample[j] = values[random.IntN(len(values))]
		}
		figures[i] = figure(sample)
	}
	slices.Sort(figures)
	return figures[draws/40], figure(values), figures[draws-draws/40]
}

// quantile returns that of one column.
func quantile(rows [][2]float64, column int, q float64) float64 {
	all := make([]float64, len(rows))
	for i, r := range rows {
		all[i] = r[column]
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)))]
}
