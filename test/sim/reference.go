// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// FairBytes is what each client would hold if somebody who knows all divided the bytes and slots of p between
// batches that cannot be divided themselves: whoever's batch is larger than its share gets nothing, and the
// others have what it leaves.
func FairBytes(p Pool, clients []Client) []float64 {
	clients = slices.Clone(clients)
	for i := range clients {
		if c := &clients[i]; c.Limits.Fraction > 0 && float64(c.Batch) > c.Limits.Fraction*float64(p.Capacity) {
			c.Workers, c.Every = 0, 0 // not even one of its batches
		}
	}
	for {
		fair, wide := fluid(float64(p.Capacity), float64(p.Slots), clients), false
		for i := range clients {
			if c := &clients[i]; !wide && c.Workers > 0 && fair[i] < float64(c.Batch)*min(1, wanted(*c, float64(p.Capacity)))*(1-1e-9) {
				c.Workers, wide = 0, true
			}
		}
		if !wide {
			return fair
		}
	}
}

// fluid is max-min fairness of dominant shares: they are raised together, in proportion to the weights,
// until a client has all that it wants, or nothing is left of bytes or of slots. Strangers are one client of
// weight 1 that does the same with its own.
func fluid(capacity, slots float64, clients []Client) []float64 {
	fair := make([]float64, len(clients))
	// level is what each has when the water stands at this height, and whether that is too high.
	level := func(height, strangers float64) bool {
		var bytes, places, all float64
		for i, c := range clients {
			most, weight := height, c.Limits.Weight
			if weight == 0 {
				weight = 1
			}
			if c.Limits.Stranger {
				most, weight = strangers, 1
			}
			each := max(float64(c.Batch)/capacity, 1/slots) // of a batch, the dominant share
			n := min(wanted(c, capacity), most*weight/each)
			fair[i] = n * float64(c.Batch)
			bytes += fair[i]
			places += n
			if c.Limits.Stranger {
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
			if c.Limits.Stranger {
				all += min(wanted(c, capacity)*max(float64(c.Batch)/capacity, 1/slots), each)
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

// wanted is how many batches a client would have at once if it were alone: no more than its own limits allow.
func wanted(c Client, capacity float64) float64 {
	n := float64(c.Workers)
	if c.Every > 0 {
		n = float64(max(1, c.Burst)) * c.Hold.Seconds() / c.Every.Seconds()
	}
	if most := c.Limits.ItemsPerSecond; most > 0 {
		n = min(n, most/float64(c.Items)*c.Hold.Seconds())
	}
	if c.Limits.Fraction > 0 {
		n = min(n, c.Limits.Fraction*capacity/float64(max(1, c.Batch)))
	}
	if most := c.Limits.Slots; most > 0 {
		n = min(n, float64(most))
	}
	return n
}
