// SPDX-License-Identifier: Apache-2.0

package pool_test

import "testing"

func TestGrowth(t *testing.T) {
	for name, story := range map[string]string{
		"what is free is granted at once": `
			A acquire 40   | A granted
			A grow 60      | A+ granted
			A grow 1       | A+ TooLarge 101/100
			= held 100 used 1 queued 0 growing 0`,
		"giving back serves the line and is never refused": `
			A acquire 100  | A granted
			B acquire 30   |
			A grow -20     | A+ granted
			A grow -10     | A+ granted, B granted
			close          |
			A grow -200    | A+ granted
			= held 30 used 2 queued 0 growing 0`,
		"whoever holds something is served before those that do not": `
			A acquire 40   | A granted
			B acquire 60   | B granted
			C acquire 40   |
			A grow 40      |
			pass 10ms      |
			B release      | A+ granted after 10ms
			= held 80 used 1 queued 1 growing 0
			A release      | C granted after 10ms`,
		"nobody comes in between, though small enough": `
			A acquire 40   | A granted
			B acquire 40   | B granted
			A grow 40      |
			C acquire 10   |
			B release      | A+ granted, C granted`,
		"of two that hold half and both want more one is refused and both end": `
			A acquire 50   | A granted
			B acquire 50   | B granted
			A grow 10      |
			pass 10ms      |
			B grow 10      | B+ NoBytes 60/100
			= held 100 used 2 queued 0 growing 1
			B release      | A+ granted after 10ms
			A release      |`,
		"a third that does not want more lets both of them wait": `
			A acquire 50   | A granted
			B acquire 45   | B granted
			C acquire 5    | C granted
			A grow 10      |
			B grow 10      |
			C release      | B+ NoBytes 55/100
			B release      | A+ granted`,
		"the holder that ends makes the rest wait for one another": `
			A acquire 60   | A granted
			B acquire 30   | B granted
			A grow 30      |
			C acquire 10   |
			resize 80      |
			B release      | A+ NoBytes 90/80, C granted`,
		"a refusal takes nothing of what was granted before": `
			A acquire 10   | A granted
			B acquire 50   | B granted
			A grow 10      | A+ granted
			A grow 10      | A+ granted
			A grow 30      |
			pass 200ms     | A+ NoBytes 60/100 after 200ms
			= held 80 used 2 queued 0 growing 0
			A grow -30     | A+ granted
			= held 50 used 2 queued 0 growing 0`,
		"growth waits for a quarter of the time left": `
			A acquire 50             | A granted
			B acquire 50             | B granted
			A grow 10 left=40ms      |
			pass 10ms                | A+ NoBytes 60/100 after 10ms`,
		"growth that is left hands the rest on": `
			A acquire 50   | A granted
			B acquire 40   | B granted
			A grow 20      |
			C acquire 10   |
			A+ leave       | A+ Ended, C granted
			= held 100 used 3 queued 0 growing 0`,
		"a holder that ends takes its requests with it": `
			A acquire 50   | A granted
			B acquire 50   | B granted
			C acquire 60   |
			A grow 10      |
			b settle A 70  |
			A release      | A+ Released, b Released
			A grow 1       | A+ Released
			A grow -1      | A+ Released
			c settle A 10  | c Released
			B release      | C granted`,
		"released twice gives back once": `
			A acquire 50   | A granted
			B acquire 50   | B granted
			A release      |
			A release      |
			= held 50 used 1 queued 0 growing 0`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// A batch has a part at each user that it passes: the user's place, and what it weighs more there.
func TestParts(t *testing.T) {
	for name, story := range map[string]string{
		"a part grows to the larger of what is held and its own": `
			A acquire 40   | A granted
			a settle A 30  | a granted
			= held 40 used 1 queued 0 growing 0
			b settle A 60  | b granted
			= held 60 used 1 queued 0 growing 0
			b release      |
			= held 40 used 1 queued 0 growing 0
			c settle A 101 | c TooLarge 101/100`,
		"nested parts pay only for what exceeds the outer ones": `
			A acquire 40   | A granted
			a settle A 60  | a granted
			b settle a 70  | b granted
			= held 70 used 1 queued 0 growing 0
			b grow 10      | b+ granted
			b release      |
			= held 60 used 1 queued 0 growing 0
			a release      |
			= held 40 used 1 queued 0 growing 0`,
		"parallel parts share what the batch holds": `
			A acquire 40   | A granted
			a settle A 60  | a granted
			b settle A 60  | b granted
			= held 60 used 1 queued 0 growing 0
			a release      |
			= held 40 used 1 queued 0 growing 0`,
		"parts outlive their batch and keep their own": `
			A acquire 40   | A granted
			a settle A 60  | a granted
			A release      |
			= held 20 used 0 queued 0 growing 0
			a grow -5      | a+ granted
			a grow 1       | a+ Released
			B acquire 90   |
			a release      | B granted`,
		"a part waits for bytes like growth, before the line": `
			A acquire 40   | A granted
			B acquire 50   | B granted
			C acquire 50   |
			a settle A 60  |
			pass 10ms      |
			B release      | a granted after 10ms
			= held 60 used 1 queued 1 growing 0`,
		"a part waits for its user's gate and the rest go on": `
			A acquire 10          | A granted
			B acquire 10          | B granted
			a settle A 10 gate    | a granted
			b settle B 30 gate    |
			C acquire 80          | C granted
			pass 10ms             |
			a release             |
			C release             | b granted after 10ms
			b release             |
			= held 20 used 2 queued 0 growing 0`,
		"a part that waits for a gate in vain holds nothing": `
			A acquire 10          | A granted
			B acquire 10          | B granted
			a settle A 10 gate    | a granted
			b settle B 30 gate    |
			pass 200ms            | b NoSlot 200/200 after 200ms
			a release             |
			c settle B 30 gate    | c granted
			= held 40 used 2 queued 0 growing 0`,
		"a part that fills a gate lets those by that its waiter held back": `
			A acquire 60          | A granted
			B acquire 30          | B granted
			C acquire 40 gate     |
			D acquire 10          |
			a settle A 10 gate    | D granted, a granted`,
		"a part in debt that fills a gate does so too": `
			A acquire 60             | A granted
			B acquire 20             | B granted
			C acquire 40 gate        |
			D acquire 10             |
			a settle A 70 gate debt  | D granted, a granted`,
		"part and growth of one batch wait in the order they came": `
			A acquire 40   | A granted
			B acquire 50   | B granted
			a settle A 60  |
			A grow 20      |
			= held 90 used 2 queued 0 growing 2
			B release      | A+ granted, a granted
			= held 80 used 1 queued 0 growing 0`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}
