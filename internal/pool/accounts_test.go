// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"

	"github.com/otel-governor/otel-governor/internal/pool"
)

func TestCeilings(t *testing.T) {
	for name, story := range map[string]string{
		"slots are refused at once, those waited for included": `
			a limits slots=2           |
			A acquire 50 account=a     | A granted
			B acquire 60 account=a     |
			C acquire 1 account=a      | C OverSlots 2/2
			D acquire 50 account=b     | D granted`,
		"bytes are refused at once, those waited for included": `
			a limits fraction=0.5      |
			B acquire 75 account=b     | B granted
			A acquire 20 account=a     | A granted
			c acquire 20 account=a     |
			d acquire 11 account=a     | d OverBytes 51/50
			e acquire 51 account=a     | e TooLarge 51/50
			A grow 11                  | A+ OverBytes 51/50
			A grow 10                  |
			f acquire 1 account=a      | f OverBytes 51/50`,
		"a waiter's share counts for whom it is": `
			y limits fraction=0.5                |
			B acquire 90 account=b               | B granted
			c acquire 60 account=x others=y:40   |
			d acquire 11 account=y               | d OverBytes 51/50
			e acquire 10 account=x others=y:11   | e OverBytes 51/50`,
		"a lower one takes nothing back": `
			A acquire 80 account=a     | A granted
			B acquire 20 account=a     | B granted
			C acquire 20 account=a     |
			a limits fraction=0.5      |
			B release                  | C granted
			D acquire 1 account=a      | D OverBytes 101/50
			= a 100 in 2`,
		"of an account that is told only now may refuse a settlement": `
			y limits fraction=0.5 slots=1          |
			Y acquire 20 account=y                 | Y granted
			A acquire 30 account=x provisional     | A granted
			b settle A 30 account=y                | b OverSlots 1/1
			c settle A 40 account=z others=y:31    | c OverBytes 51/50
			c release                              |
			= x 30 in 1
			d settle A 40 account=z others=y:30    | d granted
			= x 0 in 0
			= y 50 in 1
			= z 10 in 1`,
		"of the account that it was for anyway may not": `
			x limits fraction=0.5 slots=1          |
			A acquire 40 account=x provisional     | A granted
			b settle A 60                          | b granted
			= x 60 in 1`,
		"nor may any refuse a debt": `
			y limits fraction=0.5                  |
			A acquire 30 account=x provisional     | A granted
			b settle A 60 account=y debt           | b granted
			= y 60 in 1`,
	} {
		t.Run(name, func(t *testing.T) { play(t, roomy(), story) })
	}
}

func TestBatchOfSeveralAccounts(t *testing.T) {
	for name, story := range map[string]string{
		"is charged by share and all given back": `
			A acquire 60 account=a others=b:20,c:10   | A granted
			= a 30 in 1
			= b 20 in 0
			= c 10 in 0
			A release                                 |
			= b 0 in 0`,
		"that is refused has nothing to give back": `
			B acquire 10 account=b                    | B granted
			b limits fraction=0.1                     |
			A acquire 30 account=a others=b:10        | A OverBytes 20/10
			A release                                 |
			= a 0 in 0
			= b 10 in 1`,
		"that shrinks gives back the owner's first": `
			A acquire 60 account=a others=b:20,c:10   | A granted
			A grow -40                                | A+ granted
			= a 0 in 1
			= b 10 in 0
			= c 10 in 0
			A grow 5                                  | A+ granted
			= a 5 in 1`,
		"that waits is charged when granted": `
			X acquire 80 account=x                    | X granted
			A acquire 60 account=a others=b:20        |
			= b 0 in 0
			X release                                 | A granted
			= a 40 in 1
			= b 20 in 0`,
		"that gives up takes nothing": `
			X acquire 80 account=x                    | X granted
			A acquire 60 account=a others=b:20        |
			pass 200ms                                | A NoBytes 60/100 after 200ms
			= a 0 in 0
			= b 0 in 0`,
	} {
		t.Run(name, func(t *testing.T) { play(t, roomy(), story) })
	}
}

func TestPushOut(t *testing.T) {
	three, ten, light := roomy(), roomy(), roomy()
	three.MaxQueued, ten.MaxQueued = 3, 10
	light.MaxQueuedBytes = 50
	for name, test := range map[string]struct {
		settings pool.Settings
		story    string
	}{
		"who claims most loses its youngest to who claims less": {three, `
			A acquire 100 account=a  | A granted
			b acquire 10 account=a   |
			c acquire 10 account=a   |
			d acquire 10 account=b   |
			e acquire 10 account=c   | c LineFull 3/3
			f acquire 10 account=a   | f LineFull 3/3`},
		"though the line is full of bytes only": {light, `
			A acquire 100 account=a  | A granted
			b acquire 20 account=a   |
			c acquire 20 account=a   |
			d acquire 20 account=b   | c LineHeavy 60/50`},
		"for its weight": {three, `
			a limits weight=5        |
			A acquire 80 account=a   | A granted
			B acquire 20 account=b   | B granted
			b acquire 10 account=a   |
			c acquire 10 account=a   |
			d acquire 10 account=b   |
			e acquire 10 account=c   | d LineFull 3/3`},
		"of strangers, who are one, the greediest": {three, `
			s limits stranger        |
			t limits stranger        |
			u limits stranger        |
			A acquire 95 account=a   | A granted
			S acquire 5 account=s    | S granted
			b acquire 5 account=s    |
			c acquire 5 account=t    |
			d acquire 5 account=u    |
			e acquire 14 account=b   | b LineFull 3/3
			f acquire 14 account=c   | c LineFull 3/3`},
		"a stranger is as greedy as all of them": {three, `
			s limits stranger        |
			t limits stranger        |
			A acquire 20 account=a   | A granted
			S acquire 80 account=s   | S granted
			b acquire 5 account=a    |
			c acquire 5 account=a    |
			d acquire 5 account=a    |
			e acquire 5 account=t    | e LineFull 3/3`},
		"a batch that is too wide sends nobody away and goes first": {light, `
			A acquire 95 account=a   | A granted
			B acquire 5 account=b    | B granted
			b acquire 40 account=a   |
			c acquire 60 account=b   | c LineHeavy 100/50
			b leave                  | b Ended
			d acquire 60 account=b   |
			e acquire 20 account=a   | d LineHeavy 80/50`},
		"an account that wants more than its share has eight places in a full line": {ten, `
			a limits queued=64       |
			A acquire 90 account=a   | A granted
			B acquire 10 account=b   | B granted
			1 acquire 11 account=a   |
			2 acquire 11 account=a   |
			3 acquire 11 account=a   |
			4 acquire 11 account=a   |
			5 acquire 11 account=a   |
			6 acquire 11 account=a   |
			7 acquire 11 account=a   |
			8 acquire 11 account=a   |
			9 acquire 11 account=a   |
			b acquire 11 account=b   |
			0 acquire 11 account=a   | 0 QueueFull 9/8
			c acquire 11 account=b   | 9 LineFull 10/10`},
		"an account within its share has more": {ten, `
			b limits queued=64       |
			A acquire 99 account=a   | A granted
			a acquire 2 account=a    |
			c acquire 2 account=a    |
			1 acquire 2 account=b    |
			2 acquire 2 account=b    |
			3 acquire 2 account=b    |
			4 acquire 2 account=b    |
			5 acquire 2 account=b    |
			6 acquire 2 account=b    |
			7 acquire 2 account=b    |
			8 acquire 2 account=b    |
			9 acquire 2 account=b    | c LineFull 10/10`},
		"an account has so many places": {roomy(), `
			a limits queued=2        |
			A acquire 100 account=a  | A granted
			b acquire 1 account=a    |
			c acquire 1 account=a    |
			d acquire 1 account=a    | d QueueFull 2/2
			a limits queued=-1       |
			f acquire 1 account=a    | f QueueFull 2/0
			e acquire 1 account=b    |`},
		"who held others back and is sent away lets them by": {light, `
			A acquire 60 account=a   | A granted
			b acquire 50 account=b   |
			pass 100ms               |
			c acquire 10 account=a   | c LineHeavy 60/50`},
	} {
		t.Run(name, func(t *testing.T) { play(t, test.settings, test.story) })
	}
}
