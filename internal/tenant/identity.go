// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The names that no client can have.
const (
	DefaultName  = "default"   // of those who say nothing about themselves
	OverflowName = "_overflow" // of those whose names found no place
	OtherName    = "_other"    // of all who are not named, in telemetry
)

// MaxName is the length of the longest name, in bytes.
const MaxName = 256

// Identity returns the name of whoever is described by values, one for each key in the order of the keys;
// a key that is absent has an empty value. It is not ok if all are empty: they describe nobody.
//
// Different values have different names, whatever they contain. One value is its own name, so that it can
// be read and written as it is; several are each preceded by their length, 4:acme,4:prod. So is a single
// one that could be taken for these or for a reserved name: a client that calls itself default is
// 7:default. A name that would be MaxName bytes or longer ends in a hash of all of it instead, and has
// exactly that length, which no other name has.
//
// A single value that is its own name is returned without allocating.
func Identity(values ...string) (name string, ok bool) {
	if len(values) == 1 {
		v := values[0]
		if plain(v) {
			return bounded(v), v != ""
		}
	}
	size, some := 0, false
	for _, v := range values {
		size += len(v) + len("12345678:,")
		some = some || v != ""
	}
	if !some {
		return "", false
	}
	b := make([]byte, 0, size)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(len(v)), 10)
		b = append(b, ':')
		b = append(b, v...)
	}
	return bounded(string(b)), true
}

// plain reports whether v is its own name.
func plain(v string) bool {
	digits := 0
	for digits < len(v) && '0' <= v[digits] && v[digits] <= '9' {
		digits++
	}
	if digits > 0 {
		return digits == len(v) || v[digits] != ':'
	}
	return v != DefaultName && v != OverflowName && v != OtherName
}

// bounded returns name, or what stands for it where it is too long. Nobody can find another name that
// comes to the same without breaking SHA-256.
func bounded(name string) string {
	if len(name) < MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := base64.RawURLEncoding.EncodeToString(sum[:])
	return name[:MaxName-len(tail)-1] + "~" + tail
}

// Show returns name as a log, a message or a label may show it: what cannot be printed, or is not UTF-8,
// is escaped as Go does it, and so are backslashes, so that different names look different. A name that
// needs none of it is returned as it is.
func Show(name string) string {
	if strings.IndexFunc(name, unprintable) < 0 && utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			const hex = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hex[name[i]>>4])
			b.WriteByte(hex[name[i]&0xf])
		case unprintable(r):
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

func unprintable(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }
