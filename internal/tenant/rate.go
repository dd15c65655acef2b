// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"math/bits"
	"time"
)

// rate is a limit in whole numbers. A float64 is m × 2^-shift with a whole m, so where one token is
// 10^9 × 2^shift parts, a nanosecond at that rate earns exactly m of them: nothing is ever rounded, however
// often and at whatever moments tokens are taken. The price is that levels take 128 bits.
type rate struct {
	perNano uint64 // parts earned in a nanosecond, m; 0: no limit
	shift   uint
	full    u128  // parts in a full bucket
	burst   int64 // whole tokens in it
}

// newRate returns the limit of p with a burst of max(1 token, p × burst).
func newRate(p PerSecond, burst time.Duration) rate {
	if p == 0 {
		return rate{}
	}
	if !(p >= MinRate) { // NaN too
		p = MinRate
	}
	frac, exp := math.Frexp(float64(min(p, MaxRate)))
	r := rate{perNano: uint64(math.Ldexp(frac, 53)), shift: uint(53 - exp)} // a shift from 13 to 62
	r.full = r.parts(1)
	if most := mul(r.perNano, uint64(max(0, burst))); r.full.less(most) {
		r.full = most
	}
	r.burst = math.MaxInt64
	if whole := r.full.shr(r.shift); whole.hi < nanos {
		n, _ := bits.Div64(whole.hi, whole.lo, nanos)
		r.burst = int64(min(n, math.MaxInt64))
	}
	return r
}

const nanos = uint64(time.Second)

// parts returns n tokens in parts. N must not exceed the burst, or be 1.
func (r *rate) parts(n int64) u128 { return mul(uint64(n), nanos).shl(r.shift) }

// bucket is what is left of a rate. It goes with one rate at a time, see refit.
type bucket struct {
	level u128  // parts
	last  int64 // when level was true, in nanoseconds
}

// refill adds what was earned since the last time. A clock that goes backwards earns nothing, and nothing
// for the same time a second time: goroutines come here in another order than they read the clock.
func (b *bucket) refill(r *rate, now int64) {
	if now <= b.last {
		return
	}
	earned := mul(r.perNano, uint64(now)-uint64(b.last)) // at most 2^117, like level
	b.level, b.last = b.level.add(earned).atMost(r.full), now
}

// take removes n tokens, which must not exceed the burst, and returns whether they were there.
func (b *bucket) take(r *rate, n, now int64) bool {
	b.refill(r, now)
	need := r.parts(n)
	if b.level.less(need) {
		return false
	}
	b.level = b.level.sub(need)
	return true
}

// wait returns how long it takes from now until the bucket holds n tokens, which must not exceed the
// burst; 0 if it holds them.
func (b *bucket) wait(r *rate, n, now int64) time.Duration {
	b.refill(r, now)
	need := r.parts(n)
	if !b.level.less(need) {
		return 0
	}
	short := need.sub(b.level)
	wait, rest := bits.Div64(short.hi, short.lo, r.perNano) // at most 63 bits: the burst as a time, or of one token
	if rest > 0 {
		wait++
	}
	if b.last > now { // the clock went backwards: nothing is earned until it is back
		wait += min(uint64(b.last)-uint64(now), math.MaxInt64)
	}
	return time.Duration(min(wait, math.MaxInt64))
}

// give puts n tokens back. What was earned meanwhile need not be added first, the order makes no
// difference: min(full, level + given + earned) either way.
func (b *bucket) give(r *rate, n int64) {
	if n > r.burst {
		b.level = r.full
		return
	}
	b.level = b.level.add(r.parts(n)).atMost(r.full)
}

// refit makes a bucket that was for one rate one for another. It keeps its tokens, as far as they fit. It
// must have been refilled. One for a rate that did not limit before is full.
func (b *bucket) refit(from, to *rate) {
	switch {
	case to.perNano == 0:
		b.level = u128{}
		return
	case from.perNano == 0 || to.shift > from.shift && b.level.len()+to.shift-from.shift > 128:
		b.level = to.full
	case to.shift > from.shift:
		b.level = b.level.shl(to.shift - from.shift)
	default:
		b.level = b.level.shr(from.shift - to.shift)
	}
	b.level = b.level.atMost(to.full)
}

// u128 is a whole number of 128 bits. Its users see to it that nothing overflows.
type u128 struct{ hi, lo uint64 }

func mul(a, b uint64) u128 {
	hi, lo := bits.Mul64(a, b)
	return u128{hi, lo}
}

func (a u128) add(b u128) u128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return u128{hi, lo}
}

func (a u128) sub(b u128) u128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return u128{hi, lo}
}

func (a u128) less(b u128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a u128) atMost(b u128) u128 {
	if b.less(a) {
		return b
	}
	return a
}

// shl and shr shift by less than 64.
func (a u128) shl(n uint) u128 { return u128{a.hi<<n | a.lo>>(64-n), a.lo << n} }
func (a u128) shr(n uint) u128 { return u128{a.hi >> n, a.lo>>n | a.hi<<(64-n)} }

func (a u128) len() uint {
	if a.hi != 0 {
		return uint(64 + bits.Len64(a.hi))
	}
	return uint(bits.Len64(a.lo))
}
