// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"bytes"
	"fmt"
	"strconv"
)

// sizeBits limits what is taken for a number of bytes to 64 PiB, more than any
// machine has, so that sums of them do not overflow.
const sizeBits = 56

// stat is what memory.stat tells about usage, in bytes.
type stat struct {
	unreclaimable, inactive int64
}

var noStat = stat{Unknown, Unknown}

// Fields of memory.stat that add up to what cannot be reclaimed, by the kernel's
// Documentation/admin-guide/cgroup-v2.rst. None includes another: `anon` is
// without `shmem`, which is a part of `file`, and so are `file_dirty` and
// `file_writeback`, to which shmem does not count. The sums that the file offers
// are left out: `kernel` and `slab` hold caches that can be reclaimed, and older
// kernels do not have the former. Kernels have fewer or more fields, so one that
// is not there counts as 0, except for the first, which every kernel has.
var (
	unreclaimableV2 = []string{
		"anon", "shmem",
		"kernel_stack", "pagetables", "percpu", "sock", "slab_unreclaimable",
		"file_dirty", "file_writeback",
	}
	// `total_` is with descendants, as the limit is. Documentation/admin-guide/
	// cgroup-v1/memory.rst: rss is anonymous memory; shmem is a part of cache.
	unreclaimableV1 = []string{"total_rss", "total_shmem"}
)

func parseStatV2(text []byte) (stat, error) {
	return parseStat(text, unreclaimableV2, "inactive_file")
}

func parseStatV1(text []byte) (stat, error) {
	return parseStat(text, unreclaimableV1, "total_inactive_file")
}

// parseStat adds up the named fields of memory.stat, lines of "name bytes".
func parseStat(text []byte, unreclaimable []string, inactive string) (stat, error) {
	var s stat
	var required bool
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		into := &s.inactive
		if string(name) != inactive {
			i := index(unreclaimable, name)
			if i < 0 {
				continue
			}
			required = required || i == 0
			into = &s.unreclaimable
		}
		n, err := parseBytes(value)
		if err != nil {
			return noStat, fmt.Errorf("%s: %w", name, err)
		}
		*into += n
	}
	if !required {
		return noStat, fmt.Errorf("want a line %s, found %s", unreclaimable[0], quote(string(text)))
	}
	return s, nil
}

// index is slices.Index for a name that is not yet a string, and stays none.
func index(names []string, name []byte) int {
	for i := range names {
		if names[i] == string(name) {
			return i
		}
	}
	return -1
}

// parseBytes reads a number of bytes.
func parseBytes(text []byte) (int64, error) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, sizeBits)
	if err != nil {
		return 0, fmt.Errorf("want a number of bytes, found %s", quote(string(text)))
	}
	return int64(n), nil
}

var noPressure = Pressure{Unknown, Unknown}

// parsePressure reads a file of PSI:
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=0
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=0
func parsePressure(text []byte) (Pressure, error) {
	some, err := parsePercent(text, "some avg10=")
	if err != nil {
		return noPressure, err
	}
	full, err := parsePercent(text, "full avg10=")
	if err != nil {
		return noPressure, err
	}
	return Pressure{some, full}, nil
}

// parsePercent reads the percentage that follows a prefix.
func parsePercent(text []byte, prefix string) (float64, error) {
	rest, found := after(text, prefix)
	if !found {
		return 0, fmt.Errorf("want a line %s, found %s", prefix, quote(string(text)))
	}
	value, _, _ := bytes.Cut(rest, []byte(" "))
	percent, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(percent >= 0 && percent <= 100) { // not a number is neither
		return 0, fmt.Errorf("want %sa percentage, found %s", prefix, quote(prefix+string(rest)))
	}
	return percent, nil
}

// machine is what /proc/meminfo tells, in bytes.
type machine struct {
	total, available int64
}

var noMachine = machine{Unknown, Unknown}

// parseMachine reads /proc/meminfo. Linux before 3.14 has no MemAvailable.
func parseMachine(text []byte) (machine, error) {
	total, err := parseKilobytes(text, "MemTotal")
	if err != nil || total == Unknown {
		return noMachine, err
	}
	available, err := parseKilobytes(text, "MemAvailable")
	if err != nil || available == Unknown {
		return noMachine, err
	}
	return machine{total, available}, nil
}

// after finds the first line that starts with prefix and returns the rest of it.
func after(text []byte, prefix string) (rest []byte, found bool) {
	for line := range bytes.Lines(text) {
		if len(line) >= len(prefix) && string(line[:len(prefix)]) == prefix {
			return line[len(prefix):], true
		}
	}
	return nil, false
}
