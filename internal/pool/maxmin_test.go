// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// fairBytes is fluid, for batches that cannot be divided: whoever's batch is larger than its share gets
// nothing, and the others have what it leaves.
func fairBytes(capacity, slots float64, clients []client) []float64 {
	clients = slices.Clone(clients)
	for {
		fair, wide := fluid(capacity, slots, clients), false
		for i := range clients {
			if c := &clients[i]; !wide && c.workers > 0 && fair[i] < float64(c.batch)*min(1, wanted(*c))*(1-1e-9) {
				c.workers, wide = 0, true
			}
		}
		if !wide {
			return fair
		}
	}
}

// fluid is what each client would hold if a benevolent power divided bytes and slots: dominant shares
// are raised together, in proportion to the weights, until a client has all that it wants, or nothing is
// left of bytes or of slots. Strangers are one client of weight 1 that does the same with its own. It has
// nothing in common with how a pool does it.
func fluid(capacity, slots float64, clients []client) []float64 {
	fair := make([]float64, len(clients))
	// level is what each has when the water stands at this height, and whether that is too high.
	level := func(height, strangers float64) bool {
		var bytes, places, all float64
		for i, c := range clients {
			most, weight := height, c.party.weight
			if weight == 0 {
				weight = 1
			}
			if c.party.stranger {
				most, weight = strangers, 1
			}
			each := max(float64(c.batch)/capacity, 1/slots) // of a batch, the dominant share
			n := min(wanted(c), most*weight/each)
			fair[i] = n * float64(c.batch)
			bytes += fair[i]
			places += n
			if c.party.stranger {
				all += n * each
			}
		}
		return bytes > capacity || places > slots || strangers < height && all > height
	}
	raise := func(tooHigh func(float64) bool) float64 {
		low, high := 0.0, 1.0
		for range 60 {
			if middle := (low + high) / 2; tooHigh(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		return low
	}
	sumOfStrangers := func(each float64) (all float64) {
		for _, c := range clients {
			if c.party.stranger {
				all += min(wanted(c)*max(float64(c.batch)/capacity, 1/slots), each)
			}
		}
		return all
	}
	within := func(height float64) float64 {
		return raise(func(each float64) bool { return sumOfStrangers(each) > height })
	}
	height := raise(func(h float64) bool { return level(h, within(h)) })
	level(height, within(height))
	return fair
}

// wanted is how many batches a client would have at once if it were alone.
func wanted(c client) float64 {
	if c.every > 0 {
		return float64(max(1, c.burst)) * c.hold.Seconds() / c.every.Seconds()
	}
	return float64(c.workers)
}

func TestFairBytes(t *testing.T) {
	flood := func(weight float64, batch int64) client {
		return client{workers: 1000, batch: batch, party: limits{weight: weight}}
	}
	few := func(n int, batch int64) client { return client{workers: n, batch: batch} }
	stranger := func(batch int64) client {
		return client{workers: 1000, batch: batch, party: limits{stranger: true}}
	}
	for name, test := range map[string]struct {
		clients []client
		want    []float64
	}{
		"equal":                        {[]client{flood(1, 1), flood(1, 1)}, []float64{50, 50}},
		"weights":                      {[]client{flood(1, 1), flood(3, 1)}, []float64{25, 75}},
		"what one leaves is another's": {[]client{few(1, 10), flood(1, 1), flood(1, 1)}, []float64{10, 45, 45}},
		"all want little":              {[]client{few(1, 10), few(2, 10)}, []float64{10, 20}},
		"strangers are one":            {[]client{flood(1, 1), stranger(1), stranger(1)}, []float64{50, 25, 25}},
		"too wide":                     {[]client{flood(1, 1), few(2, 60)}, []float64{100, 0}},
		"dominant":                     {[]client{flood(1, 10), {workers: 1000}}, []float64{1000.0 / 11, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fairBytes(100, 100, test.clients)
			for i := range got {
				require.Less(t, math.Abs(got[i]-test.want[i]), 0.01, "%v", got)
			}
		})
	}
}
