// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Outcome is what became of a batch, as far as the breaker is concerned.
type Outcome uint8

// The outcomes.
const (
	Undecided Outcome = iota // another gate refused it, its caller went away, or nobody can say
	Fine
	Breach
)

// Pass is what [Tenant.Allow] gives a batch, to report its outcome with.
type Pass struct {
	word  uint64
	probe uint64 // its number; 0 if the breaker was closed
}

// Denial says why a breaker is not closed.
type Denial struct {
	Remaining         time.Duration // until it can be otherwise; above 0
	Breaches, Allowed int64         // when it opened
}

// jitter is the share of the cooldown by which it is longer at most, so that tenants that were shut out
// together do not come back together.
const jitter = 0.2

// The errors that gobreaker is told.
var (
	errBreach    = errors.New("breach")
	errUndecided = errors.New("undecided")
)

// breaker shuts a tenant out. Its states and their changes are gobreaker's, which exists from the first
// breach until it is closed again. Two things are not left to it: counting, since the batches before the
// first breach count too; and the probe, since gobreaker waits for ever for one that is not heard of
// again. Everything but word is guarded by the tenant's lock. The zero value is closed.
type breaker struct {
	word   atomic.Uint64 // generation, and in the lowest bit whether it is not closed
	window window

	machine  *gobreaker.TwoStepCircuitBreaker[struct{}]
	epoch    time.Time
	cooldown time.Duration // of the machine
	until    int64         // when an open one lets a probe through
	denial   Denial        // without Remaining

	probe      func(error) // decides the one that is out; nil: none
	probes     uint64      // so far: the number of that one
	probeSince int64
}

// closed returns a pass if the breaker is closed. It needs no lock.
func (b *breaker) closed() (Pass, bool) {
	w := b.word.Load()
	return Pass{word: w}, w&1 == 0
}

// allow lets a batch through unless the breaker is open, or half open with a probe out that is not late.
// Without take it only says whether it would.
func (b *breaker) allow(now int64, take bool) (Pass, Denial, bool) {
	if p, closed := b.closed(); closed { // meanwhile
		return p, Denial{}, true
	}
	d := b.denial
	if now < b.until {
		d.Remaining = time.Duration(b.until - now)
		return Pass{}, d, false
	}
	if late := b.probeSince + int64(b.cooldown); b.probe != nil && now < late {
		d.Remaining = time.Duration(late - now)
		return Pass{}, d, false
	}
	if !take {
		return Pass{}, Denial{}, true
	}
	b.decide(errUndecided)
	done, err := b.machine.Allow()
	if err != nil { // now is ahead of the clock
		d.Remaining = max(1, b.cooldown)
		return Pass{}, d, false
	}
	b.probe, b.probeSince = done, now
	b.probes++
	return Pass{word: b.word.Load(), probe: b.probes}, Denial{}, true
}

// decide ends the probe that is out, if there is one.
func (b *breaker) decide(err error) {
	if probe := b.probe; probe != nil {
		b.probe = nil
		probe(err)
	}
}

// report counts a batch, or decides the probe. What was let through before the breaker last changed its
// state counts for nothing, and so does a probe that was replaced.
func (b *breaker) report(c *Breaker, now int64, p Pass, o Outcome) (opened bool) {
	w := b.word.Load()
	switch {
	case p.probe != 0:
		if p.probe == b.probes && b.probe != nil {
			b.decide([...]error{Undecided: errUndecided, Fine: nil, Breach: errBreach}[o])
		}
	case p.word != w || w&1 != 0 || o == Undecided || c.Breaches <= 0:
	case o == Fine:
		b.window.add(c.Window, now, false)
	default:
		b.window.add(c.Window, now, true)
		if b.machine == nil {
			b.make(c)
		}
		if done, err := b.machine.Allow(); err == nil {
			b.denial.Breaches, b.denial.Allowed = b.window.breaches(), c.Breaches
			done(errBreach)
		}
	}
	if b.word.Load()&1 == 0 && w&1 != 0 {
		b.machine = nil // the next one has its own jitter, and the ceilings of then
	}
	return o == Breach && b.word.Load() != w && b.word.Load()&1 != 0
}

// make sets up the machine for its first breach.
func (b *breaker) make(c *Breaker) {
	cooldown := max(c.Cooldown, time.Millisecond) // to gobreaker 0 is a minute
	b.cooldown = cooldown + rand.N(max(1, time.Duration(jitter*float64(cooldown))))
	breaches, ratio := c.Breaches, c.Ratio
	b.machine = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     b.cooldown,
		ReadyToTrip: func(gobreaker.Counts) bool {
			n := b.window.breaches()
			return n >= breaches && float64(n) >= ratio*float64(b.window.batches())
		},
		IsExcluded:    func(err error) bool { return errors.Is(err, errUndecided) },
		OnStateChange: func(_ string, _, to gobreaker.State) { b.changed(to) },
	})
}

// changed follows the machine into another state.
func (b *breaker) changed(to gobreaker.State) {
	next := (b.word.Load() | 1) + 1 // the next generation, closed
	if to != gobreaker.StateClosed {
		next |= 1
	}
	b.word.Store(next)
	b.window = window{}
	if to == gobreaker.StateOpen {
		// The machine lets a probe through once its own reading, which is a little older, is over by more
		// than the cooldown: never later than what is told here.
		b.until = int64(time.Since(b.epoch)) + int64(b.cooldown) + 1
	}
}

// refit follows other ceilings. One that is open stays so for as long as it was told, unless there is to
// be no breaker at all.
func (b *breaker) refit(c *Breaker) {
	_, closed := b.closed()
	switch {
	case closed:
		b.machine = nil
	case c.Breaches <= 0:
		b.probe, b.machine = nil, nil
		b.changed(gobreaker.StateClosed)
	}
}

// clean reports whether a new breaker would be no better: it is closed, or has been ready for a probe for so
// long that the breaches which opened it would be forgotten, too. Only a batch can close it, and one whose
// tenant never comes back must not be kept for ever.
func (b *breaker) clean(c *Breaker, now int64) bool {
	if _, closed := b.closed(); closed {
		return !b.window.breached(now)
	}
	return b.probe == nil && now-b.until >= int64(c.Window)
}
