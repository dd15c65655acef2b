// SPDX-License-Identifier: Apache-2.0

package footprint

import "bytes"

// begin opens an array or an object and is true if there is something in it. Null is an empty one.
func (w *jsonWalk) begin(open, end byte) bool {
	switch w.next() {
	case open:
		w.i++
		if w.next() != end {
			return true
		}
		w.i++
	case 'n':
		w.skip()
	default:
		w.fail(noRequest)
	}
	return false
}

// more is true if there is another element, and closes the array or object if there is none.
func (w *jsonWalk) more(end byte) bool {
	if w.failed != none {
		return false
	}
	switch w.next() {
	case ',':
		w.i++
		return true
	case end:
		w.i++
		return false
	}
	return w.fail(noRequest)
}

// next is the byte that the next token begins with, 0 at the end.
func (w *jsonWalk) next() byte {
	for ; w.i < len(w.b); w.i++ {
		switch c := w.b[w.i]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// str is the length of a string, or null, once its escapes are resolved.
func (w *jsonWalk) str() int {
	if w.next() == 'n' {
		w.skip()
		return 0
	}
	if w.next() != '"' {
		w.fail(noRequest)
		return 0
	}
	w.i++
	rest := w.b[w.i:]
	n := bytes.IndexByte(rest, '"')
	if n >= 0 && bytes.IndexByte(rest[:n], '\\') < 0 {
		w.i += n + 1
		return n
	}
	saved := 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			w.i += i + 1
			return i - saved
		case '\\':
			i++
			saved++
			if i < len(rest) && rest[i] == 'u' {
				i += 4
				saved += len(`u20ac`) - utf8Len(rest[min(i-3, len(rest)):])
			}
		}
	}
	w.fail(noRequest)
	return 0
}

// utf8Len is how many bytes the four digits of an escape by number stand for. Half of a pair counts as three, which
// it is when it stands alone.
func utf8Len(digits []byte) int {
	switch {
	case len(digits) < 4 || digits[0] != '0' || digits[1] > '7':
		return 3
	case digits[1] != '0' || digits[2] > '7':
		return 2
	default:
		return 1
	}
}

// skip goes past a value of any kind. Brackets need not match inside: where they do not, the decoder fails.
func (w *jsonWalk) skip() {
	for depth := 0; ; {
		switch c := w.next(); c {
		case '"':
			w.str()
		case '{', '[':
			depth++
			w.i++
		case '}', ']':
			depth--
			w.i++
		case ',', ':':
			if depth == 0 {
				w.fail(noRequest)
			}
			w.i++
		default:
			w.word(c)
		}
		if depth < 0 {
			w.fail(noRequest)
		}
		if depth == 0 || w.failed != none {
			return
		}
	}
}

// word goes past null, true, false or a number.
func (w *jsonWalk) word(first byte) {
	for _, word := range [...]string{"null", "true", "false"} {
		if first == word[0] && bytes.HasPrefix(w.b[w.i:], []byte(word)) {
			w.i += len(word)
			return
		}
	}
	begin := w.i
	for w.i < len(w.b) && numeral[w.b[w.i]] {
		w.i++
	}
	if w.i == begin {
		w.fail(noRequest)
	}
}

// numeral is true of the bytes that numbers are made of.
var numeral = func() (is [256]bool) {
	for _, c := range []byte("0123456789+-.eE") {
		is[c] = true
	}
	return is
}()
