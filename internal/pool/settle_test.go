// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// A provisional lease stands for an estimate: its first Settle replaces it.
func TestSettle(t *testing.T) {
	for name, story := range map[string]string{
		"up is debt, since the bytes are there": `
			A acquire 40 provisional   | A granted
			B acquire 50               | B granted
			a settle A 60              | a granted
			= held 110 used 2 queued 0 growing 0
			C acquire 10               |
			a release                  |
			B release                  | C granted
			= held 70 used 2 queued 0 growing 0`,
		"down is a refund that serves the line": `
			A acquire 80 provisional   | A granted
			B acquire 50               |
			a settle A 50              | B granted, a granted
			= held 100 used 2 queued 0 growing 0`,
		"down is a refund though its caller has gone": `
			A acquire 80 provisional   | A granted
			B acquire 50               |
			a settle A 50 left=0s      | B granted, a Ended
			= held 100 used 2 queued 0 growing 0`,
		"down is a refund after the pool has shrunk below it, too": `
			A acquire 80 provisional   | A granted
			resize 40                  |
			a settle A 50              | a granted
			= held 50 used 1 queued 0 growing 0
			b settle A 60              | b TooLarge 60/40`,
		"what can never fit is refused and the estimate stays": `
			A acquire 80 provisional   | A granted
			a settle A 101             | a TooLarge 101/100
			= held 80 used 1 queued 0 growing 0
			b settle A 30              | b granted
			= held 30 used 1 queued 0 growing 0`,
		"only the first one replaces": `
			A acquire 80 provisional   | A granted
			a settle A 30              | a granted
			b settle A 20              | b granted
			c settle A 50              | c granted
			= held 50 used 1 queued 0 growing 0
			c release                  |
			= held 30 used 1 queued 0 growing 0`,
		"settled through a part it is the batch that is settled": `
			A acquire 40               | A granted
			a settle A 50              | a granted
			b settle a 60              | b granted
			a release                  |
			= held 50 used 1 queued 0 growing 0`,
		"true figures are charged although the gate keeps it waiting": `
			A acquire 10 gate          | A granted
			B acquire 40 provisional   | B granted
			b settle B 60 gate         |
			= held 70 used 2 queued 0 growing 1
			A release                  | b granted`,
		"any other lease grows to the larger only": `
			A acquire 80               | A granted
			a settle A 30              | a granted
			= held 80 used 1 queued 0 growing 0
			b settle A 90              | b granted
			= held 90 used 1 queued 0 growing 0`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// Debt is for bytes that exist, whatever the pool says; grants wait until it is paid.
func TestDebt(t *testing.T) {
	for name, story := range map[string]string{
		"taken over capacity, slots and gate": `
			A acquire 100 gate         | A granted
			B acquire 500 gate debt    | B granted
			= held 600 used 2 queued 0 growing 0
			C acquire 0                | C granted
			D acquire 1                |
			B release                  |
			A release                  | D granted`,
		"taken by a caller that has gone, and after the close": `
			A acquire 10               | A granted
			A leave                    |
			close                      |
			B acquire 10 debt left=0s  | B granted
			a settle A 200 debt        | a granted
			= held 210 used 2 queued 0 growing 0`,
		"owed on top of what is held": `
			A acquire 60               | A granted
			B acquire 50               |
			A owe 70                   |
			a settle A 140             | a TooLarge 140/100
			A grow -80                 | A+ granted, B granted
			close                      |
			A owe 10                   |
			= held 110 used 2 queued 0 growing 0`,
		"not taken by what has ended": `
			A acquire 10               | A granted
			A release                  |
			A owe 10                   |
			a settle A 200 debt        | a Released`,
	} {
		t.Run(name, func(t *testing.T) { play(t, small(), story) })
	}
}

// Whoever only watches asks first and takes what was refused as debt, with the same handle.
func TestDebtAfterRefusalWithTheSameLease(t *testing.T) {
	p := pool.New(small())
	var account pool.Account
	var l, part pool.Lease
	r := pool.Request{Account: &account, Bytes: 101}
	require.Equal(t, pool.TooLarge, p.Acquire(t.Context(), &l, r).Outcome)
	r.Debt = true
	require.Equal(t, pool.Granted, p.Acquire(t.Context(), &l, r).Outcome)

	r = pool.Request{Bytes: 110}
	require.Equal(t, pool.TooLarge, l.Settle(t.Context(), &part, r).Outcome)
	r.Debt = true
	require.Equal(t, pool.Granted, l.Settle(t.Context(), &part, r).Outcome)
	require.EqualValues(t, 110, p.Stats().Held)
	require.True(t, part.Release())
	require.EqualValues(t, 101, p.Stats().Held)
	require.True(t, l.Release())
	require.False(t, l.Release())
	require.Zero(t, p.Stats().Held)
}
