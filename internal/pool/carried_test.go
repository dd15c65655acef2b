// SPDX-License-Identifier: Apache-2.0

package pool_test

import "testing"

// What an ended lease left alive counts like what its account holds.
func TestCarried(t *testing.T) {
	for name, story := range map[string]string{
		"takes the room that was held, in one step": `
			A acquire 60 account=x     | A granted
			B acquire 60 account=y     |
			A release x 60             |
			= held 0 used 0 queued 1 growing 0
			x carry -20                | B granted
			= x 40 in 0`,
		"is no more than what was left": `
			A acquire 60 account=x     | A granted
			B acquire 60 account=y     |
			A release x 30             | B granted`,
		"counts against a ceiling": `
			x limits fraction=0.5      |
			A acquire 30 account=x     | A granted
			A release x 30             |
			B acquire 30 account=x     | B OverBytes 60/50
			C acquire 20 account=x     | C granted`,
		"counts for the order": `
			x carry 15                 |
			A acquire 85 account=z     | A granted
			B acquire 85 account=x     |
			C acquire 85 account=y     |
			A release                  | C granted`,
		"may be all of the pool for one who is alone": `
			x carry 80                 |
			A acquire 20 account=x     | A granted`,
		"beyond a share goes no further than to what is left for others": `
			x carry 60                 |
			A acquire 10 account=y     | A granted
			B acquire 10 account=x     | B OverBytes 70/50
			C acquire 30 account=y     | C granted`,
		"within a share is no reason to refuse": `
			x carry 45                 |
			y carry 45                 |
			A acquire 5 account=x      | A granted`,
		"is no reason to refuse while three times as much is left": `
			x carry 20                 |
			y carry 1                  |
			z carry 1                  |
			A acquire 60 account=x     | A granted`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// In a squeezed pool nobody has more than a fair share.
func TestSqueezed(t *testing.T) {
	for name, story := range map[string]string{
		"who holds more is refused at once": `
			A acquire 40 account=x     | A granted
			B acquire 10 account=y     | B granted
			squeeze 100                |
			C acquire 20 account=x     | C OverBytes 60/50
			D acquire 40 account=y     | D granted`,
		"weights make shares": `
			x limits weight=4          |
			y carry 1                  |
			squeeze 100                |
			A acquire 79 account=x     | A granted`,
		"who is alone has all": `
			squeeze 100                |
			A acquire 100 account=x    | A granted`,
		"and it ends": `
			A acquire 40 account=x     | A granted
			B acquire 10 account=y     | B granted
			squeeze 100                |
			C acquire 20 account=x     | C OverBytes 60/50
			resize 100                 |
			D acquire 20 account=x     | D granted`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// What nobody holds leaves less room for all.
func TestOwedBeside(t *testing.T) {
	play(t, small(), `
		beside 70                  |
		A acquire 40               |
		beside -10                 | A granted
		beside -60                 |`)
}
