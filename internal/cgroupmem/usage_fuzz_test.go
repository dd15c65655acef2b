// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bytesOracle is parseBytes by other means: big numbers and a regular expression.
func bytesOracle(text string) (n *big.Int, valid bool) {
	text = strings.TrimSpace(text)
	if !regexp.MustCompile(`^[0-9]+$`).MatchString(text) {
		return nil, false
	}
	n, _ = new(big.Int).SetString(text, 10)
	return n, n.BitLen() <= 56
}

func FuzzParseBytes(f *testing.F) {
	for _, text := range []string{"0\n", " 7 ", "007", "72057594037927935", "72057594037927936", "-1", "", "+1", "1_0", "٣", "max"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, valid := bytesOracle(text)
		got, err := parseBytes([]byte(text))
		require.Equal(t, valid, err == nil, "%v", err)
		if valid {
			require.Equal(t, want.Int64(), got)
		}
	})
}

// statOracle is parseStat by other means: a line after the other, in big numbers.
func statOracle(text string, fields []string, inactive string) (unreclaimable, inactiveFile *big.Int, valid bool) {
	sums := map[bool]*big.Int{true: new(big.Int), false: new(big.Int)}
	var first bool
	for _, line := range strings.Split(text, "\n") {
		name, value, _ := strings.Cut(line, " ")
		if name != inactive && !slices.Contains(fields, name) {
			continue
		}
		n, ok := bytesOracle(value)
		if !ok {
			return nil, nil, false
		}
		first = first || name == fields[0]
		sums[name == inactive].Add(sums[name == inactive], n)
	}
	return sums[false], sums[true], first
}

func FuzzParseStat(f *testing.F) {
	f.Add(usageV2["/cg/pod/ctr/memory.stat"])
	f.Add(usageV1["/cg/pod/ctr/memory.stat"])
	f.Add("anon 72057594037927935\nanon 72057594037927935\nsock 1")
	f.Add("anon\nanon 1\n\n inactive_file 5\ninactive_file  5 \r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) >= 1<<10 {
			return // sums of so few lines do not overflow, as those of a file do not
		}
		for _, version := range []struct {
			parse    func([]byte) (stat, error)
			fields   []string
			inactive string
		}{
			{parseStatV2, unreclaimableV2, "inactive_file"},
			{parseStatV1, unreclaimableV1, "total_inactive_file"},
		} {
			unreclaimable, inactive, valid := statOracle(text, version.fields, version.inactive)
			got, err := version.parse([]byte(text))
			require.Equal(t, valid, err == nil, "%v", err)
			if !valid {
				require.Equal(t, noStat, got)
				continue
			}
			require.Equal(t, unreclaimable.String(), fmt.Sprint(got.unreclaimable))
			require.Equal(t, inactive.String(), fmt.Sprint(got.inactive))
		}
	})
}

// What is returned is a percentage, and what the kernel prints is what is read.
func FuzzParsePressure(f *testing.F) {
	f.Add(some+full, uint16(1), uint16(10000))
	f.Add("some avg10=1e1 x\nfull avg10=0x1p2 \n", uint16(0), uint16(99))
	f.Add("some avg10=NaN\n", uint16(0), uint16(0))
	f.Fuzz(func(t *testing.T, text string, some, full uint16) {
		got, err := parsePressure([]byte(text))
		for _, percent := range []float64{got.Some, got.Full} {
			require.Equal(t, err != nil, percent == Unknown)
			require.True(t, percent == Unknown || percent >= 0 && percent <= 100)
		}

		line := "%s avg10=%d.%02d avg60=0.00 avg300=0.00 total=0\n"
		kernel := fmt.Sprintf(line, "some", some/100, some%100) + fmt.Sprintf(line, "full", full/100, full%100)
		got, err = parsePressure([]byte(kernel + text))
		require.Equal(t, some <= 10000 && full <= 10000, err == nil)
		if err == nil {
			require.Equal(t, Pressure{float64(some) / 100, float64(full) / 100}, got)
		}
	})
}

// Both figures are known or none, and what the kernel prints is what is read.
func FuzzParseMachine(f *testing.F) {
	f.Add(usageV2["/proc/meminfo"], uint64(1), uint64(0))
	f.Add("MemAvailable: 1 kB\nMemTotal: 2 MB", uint64(math.MaxInt64/1024), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, text string, total, available uint64) {
		got, err := parseMachine([]byte(text))
		if err != nil || got.total == Unknown || got.available == Unknown {
			require.Equal(t, noMachine, got)
		}

		const most = math.MaxInt64 / 1024
		kernel := fmt.Sprintf("MemTotal:%15d kB\nMemFree: 5 kB\nMemAvailable:%11d kB\n", total, available)
		got, err = parseMachine([]byte(kernel + text))
		require.Equal(t, total <= most && available <= most, err == nil)
		if err == nil {
			require.Equal(t, machine{int64(total) * 1024, int64(available) * 1024}, got)
		}
	})
}
