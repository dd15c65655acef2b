// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDisk(t *testing.T) {
	unreadable := errors.New("unreadable")
	var free, total int64
	var failure error
	d := NewDisk(func() (int64, int64, error) { return free, total, failure }, 0.1, 500)
	for _, step := range []struct {
		name        string
		free, total int64
		failure     error
		reserve     int64
		low, change bool
	}{
		{"plenty", 9000, 10_000, nil, 500, false, false},
		{"the reserve and nothing else", 500, 10_000, nil, 500, false, false},
		{"less", 499, 10_000, nil, 500, true, true},
		{"nothing", 0, 10_000, nil, 500, true, false},
		{"the reserve again", 500, 10_000, nil, 500, true, false},
		{"nearly a quarter more", 624, 10_000, nil, 500, true, false},
		{"who knows", 9000, 10_000, unreadable, 500, true, false},
		{"a quarter more", 625, 10_000, nil, 500, false, true},
		{"a smaller disk has a smaller reserve", 100, 1000, nil, 100, false, false},
		{"less than that", 99, 1000, nil, 100, true, true},
		{"a quarter more than that", 125, 1000, nil, 100, false, true},
		{"who knows", 0, 1000, unreadable, 100, false, false},
	} {
		free, total, failure = step.free, step.total, step.failure
		before := d.state
		s, changed, err := d.Check()
		require.Equal(t, step.failure, err, step.name)
		require.Equal(t, step.change, changed, step.name)
		if err != nil {
			require.Equal(t, before, s, step.name)
			continue
		}
		require.Equal(t, DiskState{Free: step.free, Reserve: step.reserve, Low: step.low}, s, step.name)
	}
}
