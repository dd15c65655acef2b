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

func throughputStays(t *testing.T, encoding string) {
	t.Helper()
	const pairs, goal = 40, 0.97
	throughput := func(yaml ...string) float64 {
		o := besideBombs(3 * time.Second)
		o.YAML, o.Offender = yaml, bomb.Load{}
		o.Neighbor.PerSecond, o.Neighbor.Clients, o.Neighbor.Encoding = 0, 4, encoding
		row := contend(t, o)
		if row.Neighbor.Share() < 1 {
			t.Errorf("the neighbor was answered %v", row.Neighbor.Answers)
		}
		return float64(row.Neighbor.Answers[bomb.Accepted])
	}
	ratios := make([]float64, pairs)
	for i := range ratios {
		var governed, plain float64
		if i%2 == 0 {
			governed, plain = throughput(bomb.Governor), throughput()
		} else {
			plain, governed = throughput(), throughput(bomb.Governor)
		}
		ratios[i] = governed / plain
	}
	low, mid, high := interval(ratios)
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
	const draws = 10_000
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
