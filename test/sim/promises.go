// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
)

// margin is how far from what it is promised a client may be.
const margin = 0.05

// Fair promises everybody what it has by [FairBytes], within 5 % or, where that is few batches, within one.
func Fair(t testing.TB, o Outcome) {
	t.Helper()
	fair := FairBytes(o.Pool, o.Clients)
	for i, c := range o.Clients {
		within := margin * fair[i]
		if fair[i] < 20*float64(c.Batch) {
			within = max(within, float64(c.Batch))
		}
		if r := o.Results[i]; !(math.Abs(r.Held-fair[i]) <= within) {
			t.Errorf("%s holds %.1f MiB and should %.1f: %+v", c.Name, r.Held/MiB, fair[i]/MiB, r)
		}
	}
}

// FairToStrangersAsOne promises what [Fair] does, of strangers to all of them together.
func FairToStrangersAsOne(t testing.TB, o Outcome) {
	t.Helper()
	one, all := Client{Limits: Limits{Stranger: true}}, Result{}
	merged := Outcome{Pool: o.Pool}
	for i, c := range o.Clients {
		if !c.Limits.Stranger {
			merged.Clients, merged.Results = append(merged.Clients, c), append(merged.Results, o.Results[i])
			continue
		}
		one.Name, one.Batch, one.Hold = "strangers", c.Batch, c.Hold
		one.Workers += c.Workers
		all.Held += o.Results[i].Held
	}
	merged.Clients, merged.Results = append(merged.Clients, one), append(merged.Results, all)
	Fair(t, merged)
}

// Accepts promises that at least this part of a client's batches is accepted, and that they are so many.
func Accepts(name string, least float64, count int) Promise {
	return func(t testing.TB, o Outcome) {
		t.Helper()
		if r := o.of(t, name); r.Accepted < count || r.Acceptance() < least {
			t.Errorf("of the batches of %s, %.2f %% were accepted and should at least %.2f %%, and %d: %+v",
				name, 100*r.Acceptance(), 100*least, count, r)
		}
	}
}

// Refuses promises that nothing of a client is accepted, and that this is why most of it is not.
func Refuses(name, why string) Promise {
	return func(t testing.TB, o Outcome) {
		t.Helper()
		if r := o.of(t, name); r.Accepted > 0 || float64(r.Why[why]) < 0.9*float64(r.Refused) || r.Refused == 0 {
			t.Errorf("%s should be refused by %s: %+v", name, why, r)
		}
	}
}

// GetsItsRate promises a client that wants more than its rate as many items as that allows, within 5 %.
func GetsItsRate(name string) Promise {
	return func(t testing.TB, o Outcome) {
		t.Helper()
		for i, c := range o.Clients {
			if c.Name != name {
				continue
			}
			// By what was at work rather than accepted, which is the same on average and not cut off at the edges.
			got := o.Results[i].Busy / c.Hold.Seconds() * float64(c.Items)
			if want := c.Limits.ItemsPerSecond; !(math.Abs(got-want) <= margin*want) {
				t.Errorf("%s gets %.0f items a second and should %.0f", name, got, want)
			}
		}
		o.of(t, name)
	}
}

// CostsOthers promises that of the batches of all others at most this part more is refused than without
// this client.
func CostsOthers(name string, most float64) Promise {
	return func(t testing.TB, o Outcome) {
		t.Helper()
		others := func(results []Result) float64 {
			var sum Result
			for i, c := range o.Clients {
				if c.Name != name {
					sum.Accepted += results[i].Accepted
					sum.Refused += results[i].Refused
				}
			}
			return sum.Acceptance()
		}
		with, without := others(o.Results), others(o.Without(name))
		t.Logf("of the others' batches %.2f %% are accepted, and without %s %.2f %%", 100*with, name, 100*without)
		if with < without-most {
			t.Errorf("%s costs the others %.2f %% of their batches", name, 100*(without-with))
		}
	}
}

// of returns what the client of this name got.
func (o *Outcome) of(t testing.TB, name string) *Result {
	t.Helper()
	for i, c := range o.Clients {
		if c.Name == name {
			return &o.Results[i]
		}
	}
	t.Fatalf("there is no client %s", name)
	return nil
}
