// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	units "github.com/docker/go-units"
)

// Unlimited is the count that the word unlimited stands for.
const Unlimited = math.MaxInt64

// The parsers return errors that say what they would have taken, to follow "must be".
var (
	errWhole    = errors.New("a whole number below 2^63, without leading zeros")
	errCount    = errors.New("a whole number below 2^63, without leading zeros, or unlimited")
	errSize     = errors.New("a whole number of bytes below 2^63, or a size such as 512MiB")
	errFraction = errors.New("a number such as 0.5")
)

var (
	whole = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	sized = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)? ?([kKmMgGtTpP][iI]?[bB]?|[bB])$`)
	plain = regexp.MustCompile(`^[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?$`)
)

// ParseSize parses a number of bytes, or a number with a binary suffix whatever its spelling: 512M, 512MB
// and 512MiB are all 536870912.
func ParseSize(s string) (int64, error) {
	if whole.MatchString(s) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, errSize
		}
		return n, nil
	}
	if !sized.MatchString(s) {
		return 0, errSize
	}
	if strings.HasSuffix(strings.ToLower(s), "i") { // as Kubernetes has it, and the library has not
		s += "B"
	}
	n, err := units.RAMInBytes(s)
	// The library counts in float64, whose conversion beyond int64 is undefined: 2^62 is far beyond
	// any memory and far enough below.
	if err != nil || n < 0 || n > 1<<62 {
		return 0, errSize
	}
	return n, nil
}

// ParseCount parses a whole number or the word unlimited.
func ParseCount(s string) (int64, error) {
	if s == "unlimited" {
		return Unlimited, nil
	}
	n, err := parseWhole(s)
	if err != nil {
		return 0, errCount
	}
	return n, nil
}

func parseWhole(s string) (int64, error) {
	if !whole.MatchString(s) {
		return 0, errWhole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errWhole
	}
	return n, nil
}

func parseFraction(s string) (float64, error) {
	if !plain.MatchString(s) {
		return 0, errFraction
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errFraction
	}
	return f, nil
}
