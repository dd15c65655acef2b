// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// roomy is a pool for stories in which bytes are scarce and slots are not.
func roomy() pool.Settings {
	s := small()
	s.Slots, s.MaxQueued = 100, 100
	return s
}

func TestOrder(t *testing.T) {
	for name, story := range map[string]string{
		"who holds the least is next": `
			A acquire 50 account=a   | A granted
			B acquire 20 account=b   | B granted
			C acquire 30 account=c   | C granted
			a acquire 30 account=a   |
			b acquire 30 account=b   |
			C release                | b granted`,
		"for its weight": `
			a limits weight=4        |
			A acquire 50 account=a   | A granted
			B acquire 20 account=b   | B granted
			C acquire 30 account=c   | C granted
			b acquire 30 account=b   |
			a acquire 30 account=a   |
			C release                | a granted`,
		"a weight that changes changes the turn": `
			A acquire 50 account=a   | A granted
			B acquire 20 account=b   | B granted
			C acquire 30 account=c   | C granted
			b acquire 30 account=b   |
			a acquire 30 account=a   |
			a limits weight=4        |
			C release                | a granted`,
		"within an account the first": `
			A acquire 100 account=a  | A granted
			b acquire 40 account=b   |
			c acquire 30 account=b   |
			A grow -30               | A+ granted
			A grow -10               | A+ granted, b granted`,
		"equals take turns": `
			A acquire 100 account=x  | A granted
			a acquire 10 account=a   |
			b acquire 10 account=a   |
			c acquire 10 account=b   |
			A grow -10               | A+ granted, a granted
			A grow -10               | A+ granted, c granted
			A grow -10               | A+ granted, b granted`,
		"strangers are one": `
			s limits stranger        |
			t limits stranger        |
			S acquire 30 account=s   | S granted
			B acquire 20 account=b   | B granted
			C acquire 50 account=c   | C granted
			t acquire 20 account=t   |
			b acquire 20 account=b   |
			C grow -20               | C+ granted, b granted
			C grow -20               | C+ granted, t granted`,
		"a stranger that becomes known is on its own": `
			s limits stranger        |
			t limits stranger        |
			S acquire 30 account=s   | S granted
			B acquire 20 account=b   | B granted
			C acquire 50 account=c   | C granted
			b acquire 20 account=b   |
			t acquire 20 account=t   |
			t limits                 |
			C grow -20               | C+ granted, t granted`,
	} {
		t.Run(name, func(t *testing.T) { play(t, roomy(), story) })
	}
}

func TestSlotsCountLikeBytes(t *testing.T) {
	play(t, small(), `
		A acquire 1 account=a    | A granted
		B acquire 1 account=a    | B granted
		C acquire 30 account=c   | C granted
		D acquire 9 account=d    | D granted
		b acquire 1 account=a    |
		c acquire 1 account=c    |
		D release                | c granted`)
}

// Shares that differ by less than a class are equal, but not for one and the same for ever.
func TestEqualsTakeTurns(t *testing.T) {
	s := roomy()
	s.Capacity, s.Slots, s.MaxQueuedBytes = 10000, 1<<20, 10000
	play(t, s, `
		A acquire 1000 account=a  | A granted
		B acquire 1000 account=b  | B granted
		X acquire 8000 account=x  | X granted
		1 acquire 10 account=a    |
		2 acquire 10 account=a    |
		3 acquire 10 account=a    |
		4 acquire 10 account=b    |
		5 acquire 10 account=b    |
		X grow -10                | 1 granted, X+ granted
		X grow -10                | 4 granted, X+ granted
		X grow -10                | 2 granted, X+ granted
		X grow -10                | 5 granted, X+ granted`)
}

// Whoever is past half of its time and within its share has others held back for it.
func TestLate(t *testing.T) {
	for name, story := range map[string]string{
		"small ones pass until half of its time": `
			A acquire 70 account=a   | A granted
			b acquire 50 account=b   |
			B acquire 10 account=a   | B granted
			pass 100ms               |
			C acquire 10 account=a   |
			D acquire 20 account=d   | D granted
			A release                | C granted, b granted after 100ms`,
		"but not if it wants more than its share": `
			A acquire 70 account=a   | A granted
			b acquire 60 account=b   |
			pass 100ms               |
			C acquire 10 account=a   | C granted`,
		"though many are late that want more than theirs": `
			F acquire 60 account=f   | F granted
			G acquire 40 account=f   | G granted
			a acquire 30 account=f   |
			b acquire 30 account=f   |
			c acquire 30 account=f   |
			d acquire 30 account=f   |
			e acquire 30 account=f   |
			f acquire 30 account=f   |
			g acquire 30 account=f   |
			h acquire 30 account=f   |
			i acquire 50 account=x   |
			pass 100ms               |
			G release                |
			F grow -10               | F+ granted, i granted after 100ms`,
		"but not while its own gate is full": `
			A acquire 10 account=b gate   | A granted
			B acquire 60 account=a        | B granted
			b acquire 40 account=b gate   |
			pass 100ms                    |
			C acquire 10 account=a        | C granted`,
		"and no longer than it waits": `
			A acquire 70 account=a        | A granted
			b acquire 50 account=b        |
			pass 100ms                    |
			c acquire 10 account=a        |
			pass 100ms                    | b NoBytes 50/100 after 200ms, c granted after 100ms`,
		"nor when another comes and its share shrinks": `
			A acquire 70 account=a        | A granted
			b acquire 50 account=b        |
			pass 100ms                    |
			c acquire 10 account=a        |
			D acquire 5 account=d         | D granted, c granted`,
		"growth is held back, too": `
			A acquire 60 account=a        | A granted
			B acquire 10 account=a        | B granted
			b acquire 50 account=b        |
			pass 100ms                    |
			B grow 10                     |
			A release                     | B+ granted, b granted after 100ms`,
	} {
		t.Run(name, func(t *testing.T) { play(t, roomy(), story) })
	}
}

func TestGrowthOfSeveralAccounts(t *testing.T) {
	for name, story := range map[string]string{
		"over its share it is served after those that hold nothing": `
			A acquire 60 account=a   | A granted
			B acquire 20 account=b   | B granted
			C acquire 20 account=b   | C granted
			A grow 20                |
			c acquire 20 account=c   |
			B release                | c granted
			C release                | A+ granted`,
		"over its share it does not stop newcomers": `
			A acquire 60 account=a   | A granted
			B acquire 30 account=b   | B granted
			A grow 20                |
			C acquire 10 account=c   | C granted`,
		"in debt over its share it lets those by that it held back": `
			A acquire 5 account=a    | A granted
			B acquire 45 account=b   | B granted
			C acquire 40 account=c   | C granted
			A grow 20                |
			d acquire 5 account=d    |
			A owe 1                  | d granted`,
		"within its share it goes before an older one that is over": `
			A acquire 60 account=a   | A granted
			B acquire 20 account=b   | B granted
			C acquire 10 account=c   | C granted
			D acquire 10 account=d   | D granted
			A grow 10                |
			B grow 5                 |
			C grow -5                | B+ granted, C+ granted`,
	} {
		t.Run(name, func(t *testing.T) { play(t, roomy(), story) })
	}
}
