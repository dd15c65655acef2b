// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// noLimit is the least number that stands for "no limit": the largest int64
// rounded down to whole pages of 64 KiB. Kernels round to their own page size
// (v1; 0x7FFFFFFFFFFFF000 with 4 KiB), those before 3.19 not at all.
const noLimit = math.MaxInt64 &^ (1<<16 - 1)

// parseLimit reads a limit: a number of bytes, or "max" for unlimited.
func parseLimit(text string) (int64, error) {
	s := strings.TrimSpace(text)
	if s == "max" {
		return unlimited, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf(`want a number of bytes or "max", found %s`, quote(text))
	}
	if n >= noLimit {
		return unlimited, nil
	}
	return int64(n), nil
}

// parseMemoryStat reads the limit that v1 states in memory.stat: the least of
// the cgroup and of all ancestors that are charged for it. Every v1 kernel has
// that line, so a file without it is an error.
func parseMemoryStat(text string) (int64, error) {
	const key = "hierarchical_memory_limit"
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, key+" "); found {
			n, err := parseLimit(value)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", key, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("want a line %s, found %s", key, quote(text))
}

// parseFlag reads a switch: 0 or 1.
func parseFlag(text string) (int64, error) {
	switch strings.TrimSpace(text) {
	case "0":
		return 0, nil
	case "1":
		return 1, nil
	}
	return 0, fmt.Errorf("want 0 or 1, found %s", quote(text))
}

// parseMeminfo reads MemTotal of /proc/meminfo in bytes; 0 if there is none.
func parseMeminfo(text string) (int64, error) {
	n, err := parseKilobytes([]byte(text), "MemTotal")
	return max(n, 0), err
}

// parseKilobytes reads a field of /proc/meminfo in bytes; Unknown if there is none.
func parseKilobytes(text []byte, name string) (int64, error) {
	value, found := after(text, name+":")
	if !found {
		return Unknown, nil
	}
	kilobytes, unit, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
	n, err := strconv.ParseUint(string(kilobytes), 10, 64)
	if err != nil || string(unit) != "kB" || n > math.MaxInt64/1024 {
		return Unknown, fmt.Errorf("want %s in kB, found %s", name, quote(name+":"+string(value)))
	}
	return int64(n) * 1024, nil
}

// quote shows what was found, on one line and no longer than a log can bear.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
