// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// reference is a bucket as one would write it down: exact, and as slow as that is.
type reference struct {
	rate, burst, level *big.Rat // tokens per second, tokens, tokens; a nil rate is no limit
	last               int64
}

func newReference(p PerSecond, burst time.Duration, now int64) *reference {
	r := &reference{last: now}
	r.set(p, burst)
	r.level = r.burst
	return r
}

func (r *reference) set(p PerSecond, burst time.Duration) {
	if r.rate, r.burst = nil, new(big.Rat); p == 0 {
		return
	}
	r.rate = new(big.Rat).SetFloat64(float64(p))
	r.burst.Mul(r.rate, big.NewRat(int64(burst), int64(time.Second)))
	if one := big.NewRat(1, 1); r.burst.Cmp(one) < 0 {
		r.burst = one
	}
}

func (r *reference) refill(now int64) {
	if now > r.last && r.rate != nil {
		dt := new(big.Int).Sub(big.NewInt(now), big.NewInt(r.last))
		r.add(new(big.Rat).Mul(r.rate, new(big.Rat).SetFrac(dt, big.NewInt(int64(time.Second)))))
	}
	r.last = max(r.last, now)
}

func (r *reference) add(tokens *big.Rat) {
	r.level = new(big.Rat).Add(r.level, tokens)
	if r.level.Cmp(r.burst) > 0 {
		r.level = r.burst
	}
}

// can reports whether n tokens are there, and ever can be.
func (r *reference) can(n int64) (now, ever bool) {
	want := new(big.Rat).SetInt64(n)
	return r.rate == nil || n <= 0 || r.level.Cmp(want) >= 0, r.rate == nil || n <= 0 || r.burst.Cmp(want) >= 0
}

// level returns the tokens in b, and how many one part is.
func level(b *bucket, r *rate) (tokens, part *big.Rat) {
	whole := func(u u128) *big.Int {
		i := new(big.Int).Lsh(new(big.Int).SetUint64(u.hi), 64)
		return i.Or(i, new(big.Int).SetUint64(u.lo))
	}
	token := new(big.Int).Lsh(big.NewInt(int64(time.Second)), r.shift)
	return new(big.Rat).SetFrac(whole(b.level), token), new(big.Rat).SetFrac(big.NewInt(1), token)
}

func move(b *buckets, now int64, before, after Amounts) RateResult {
	return b.move(now, &before, &after)
}

func (a Amounts) minus(b Amounts) Amounts {
	return Amounts{a.Requests - b.Requests, a.Items - b.Items, a.Bytes - b.Bytes}
}

func (a Amounts) raw() [units]int64 { return [units]int64{a.Requests, a.Items, a.Bytes} }

func TestBucketsAreExact(t *testing.T) {
	rateOf := rapid.OneOf(
		rapid.SampledFrom([]PerSecond{0, MinRate, 0.1, 1, 3, 7.3, 100, 1e6, 1e9 + 1, MaxRate}),
		rapid.Map(rapid.Float64Range(math.Log(float64(MinRate)), math.Log(float64(MaxRate))), func(f float64) PerSecond {
			return min(max(PerSecond(math.Exp(f)), MinRate), MaxRate)
		}),
	)
	limits := rapid.Custom(func(t *rapid.T) Rate {
		return Rate{
			Requests: rateOf.Draw(t, "requests"), Items: rateOf.Draw(t, "items"), Bytes: rateOf.Draw(t, "bytes"),
			Burst: rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 2 * time.Second, 333333333, time.Hour, math.MaxInt64}).Draw(t, "burst"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		l := limits.Draw(t, "limits")
		now := rapid.SampledFrom([]int64{0, -1, 1 << 40, math.MinInt64, -1 << 62}).Draw(t, "start")
		b := newBuckets(newRates(l), now)
		var refs [units]*reference
		for u, p := range [...]PerSecond{l.Requests, l.Items, l.Bytes} {
			refs[u] = newReference(p, l.Burst, now)
		}
		var taken []Amounts
		amount := func(u Unit, label string) int64 {
			most := b.rates.of[u].burst
			return rapid.OneOf(
				rapid.SampledFrom([]int64{0, 1, most, most/2 + 1, max(0, most-1), min(most, math.MaxInt64-1) + 1, math.MaxInt64}),
				rapid.Int64Range(0, max(1, most/4)),
			).Draw(t, label)
		}
		settle := func(before, after Amounts) bool {
			res := move(&b, now, before, after)
			want := Taken
			for u, n := range after.minus(before).raw() {
				if n <= 0 || refs[u].rate == nil || want == OverBurst {
					continue
				}
				if _, ever := refs[u].can(after.raw()[u]); !ever {
					want = OverBurst
					continue
				}
				refs[u].refill(now)
				if ok, _ := refs[u].can(n); !ok {
					want = Missing
				}
			}
			if res.Outcome != want {
				t.Fatalf("%+v, want outcome %d", res, want)
			}
			switch res.Outcome {
			case OverBurst:
				if res.Amount <= res.Burst || res.Amount != after.raw()[res.Unit] {
					t.Fatalf("%+v", res)
				}
			case Missing:
				try := func(wait time.Duration) RateOutcome {
					later := b
					return move(&later, now+int64(wait), before, after).Outcome
				}
				if res.Wait <= 0 {
					t.Fatalf("%+v", res)
				}
				if res.Wait < math.MaxInt64 && now < math.MaxInt64-int64(res.Wait) && (try(res.Wait) != Taken || try(res.Wait-1) != Missing) {
					t.Fatalf("%+v is not the true wait", res)
				}
			case Taken:
				for u, n := range after.minus(before).raw() {
					if refs[u].rate != nil {
						refs[u].add(new(big.Rat).SetInt64(-n))
					}
				}
			}
			return res.Outcome == Taken
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				dt := rapid.OneOf(
					rapid.SampledFrom([]int64{1, int64(time.Second), 100 * 365 * 24 * int64(time.Hour), math.MaxInt64}),
					rapid.Int64Range(-1e9, 1e10),
				).Draw(t, "dt")
				if sum := now + dt; dt < 0 && sum < now || dt > 0 && sum > now {
					now = sum
				}
			},
			"take": func(*rapid.T) {
				a := Amounts{amount(Requests, "r"), amount(Items, "i"), amount(Bytes, "b")}
				if settle(Amounts{}, a) {
					taken = append(taken, a)
				}
			},
			"settle": func(t *rapid.T) {
				if len(taken) == 0 {
					t.Skip()
				}
				last := &taken[len(taken)-1]
				if a := (Amounts{amount(Requests, "r"), amount(Items, "i"), amount(Bytes, "b")}); settle(*last, a) {
					*last = a
				}
			},
			"refund": func(t *rapid.T) {
				if len(taken) == 0 {
					t.Skip()
				}
				settle(taken[len(taken)-1], Amounts{})
				taken = taken[:len(taken)-1]
			},
			"ceilings": func(t *rapid.T) {
				l := limits.Draw(t, "new limits")
				b.refit(newRates(l), now)
				for u, p := range [...]PerSecond{l.Requests, l.Items, l.Bytes} {
					before := refs[u].rate
					refs[u].refill(now)
					refs[u].set(p, l.Burst)
					if before == nil {
						refs[u].level = refs[u].burst
					}
					refs[u].add(new(big.Rat))
					if got, part := level(&b.of[u], &b.rates.of[u]); p != 0 {
						if lost := new(big.Rat).Sub(refs[u].level, got); lost.Sign() < 0 || lost.Cmp(part) >= 0 {
							t.Fatalf("%s: %s tokens were lost", Unit(u), lost.FloatString(20))
						}
						refs[u].level = got
					}
				}
			},
			"": func(t *rapid.T) {
				full := true
				for u, ref := range refs {
					if ref.rate == nil {
						continue
					}
					have, ref := b.of[u], *ref // looking changes nothing
					have.refill(&b.rates.of[u], now)
					ref.refill(now)
					if got, _ := level(&have, &b.rates.of[u]); got.Cmp(ref.level) != 0 {
						t.Fatalf("%s: %s tokens, want %s", Unit(u), got.FloatString(20), ref.level.FloatString(20))
					}
					full = full && ref.level.Cmp(ref.burst) == 0
				}
				if c := b; c.full(now) != full {
					t.Fatalf("full is not %v", full)
				}
			},
		})
	})
}

// TestIdleTimeEarnsNoMoreThanTheBurst lets a bucket rest for a century and empties it.
func TestIdleTimeEarnsNoMoreThanTheBurst(t *testing.T) {
	for _, p := range []PerSecond{MinRate, 1, 1e6, MaxRate} {
		b := newBuckets(newRates(Rate{Requests: p, Burst: 2 * time.Second}), 0)
		now := 100 * 365 * 24 * int64(time.Hour)
		burst := max(1, int64(2*p))
		assert.Equal(t, Taken, move(&b, now, Amounts{}, Amounts{Requests: burst}).Outcome)
		res := move(&b, now, Amounts{}, Amounts{Requests: 1})
		assert.Equal(t, RateResult{Outcome: Missing, Amount: 1, Burst: burst, Wait: res.Wait}, res)
		assert.InDelta(t, math.Ceil(1e9/float64(p)), float64(res.Wait), 1)
	}
}

func TestRateResultNamesTheUnit(t *testing.T) {
	b := newBuckets(newRates(Rate{Requests: 1, Items: 10, Bytes: 100, Burst: 2 * time.Second}), 0)
	assert.Equal(t, RateResult{Outcome: OverBurst, Unit: Items, Amount: 21, Burst: 20},
		move(&b, 0, Amounts{}, Amounts{Requests: 1, Items: 21, Bytes: 1}))
	assert.Equal(t, Taken, move(&b, 0, Amounts{}, Amounts{Requests: 1, Items: 20, Bytes: 100}).Outcome)
	assert.Equal(t, RateResult{Outcome: Missing, Unit: Bytes, Amount: 200, Burst: 200, Wait: time.Second},
		move(&b, 0, Amounts{}, Amounts{Requests: 1, Items: 5, Bytes: 200}))
	assert.Equal(t, Taken, move(&b, 0, Amounts{}, Amounts{Requests: 1, Bytes: 100}).Outcome, "nothing was taken by the refusals")
	assert.Equal(t, "items", Items.String())
}

// TestSettleJudgesTheWhole says of a batch that is larger than the burst in all that it can never pass,
// though the difference to what it has already taken would.
func TestSettleJudgesTheWhole(t *testing.T) {
	b := newBuckets(newRates(Rate{Bytes: 100, Burst: time.Second}), 0)
	assert.Equal(t, Taken, move(&b, 0, Amounts{}, Amounts{Bytes: 60}).Outcome)
	assert.Equal(t, RateResult{Outcome: OverBurst, Unit: Bytes, Amount: 101, Burst: 100}, move(&b, 0, Amounts{Bytes: 60}, Amounts{Bytes: 101}))
	assert.Equal(t, Taken, move(&b, 0, Amounts{Bytes: 60}, Amounts{Bytes: 100}).Outcome)
	assert.Equal(t, Taken, move(&b, 0, Amounts{Bytes: 100}, Amounts{Bytes: 10}).Outcome)
	assert.Equal(t, Taken, move(&b, 0, Amounts{}, Amounts{Bytes: 90}).Outcome)
	assert.Equal(t, Missing, move(&b, 0, Amounts{}, Amounts{Bytes: 1}).Outcome)
}
