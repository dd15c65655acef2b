// SPDX-License-Identifier: Apache-2.0

package footprint

const stringTableField = 5

// stringTable finds the strings of a profile's dictionary by their index, for the attributes of resources and
// scopes that refer to them: pdata gives each such attribute the string, and the walk over decoded profiles
// counts it each time. It allocates nothing: it marks the place of every stride-th string and steps from there.
//
// All steps together are bounded by the body's length. Beyond that, or if the dictionary comes in parts, every
// reference weighs as much as the longest string.
type stringTable struct {
	dictionary []byte
	marks      [1024]int
	stride, n  int
	steps      int
	longest    int64
}

// The two parts of a profiles request, for wireProfiles.
var onlyDictionary, onlyResources = messageOf(profilesDictionary), messageOf(resourceProfiles)

// wireProfiles walks the dictionary of a profiles request first, which comes last on the wire, and then what
// refers to it.
func wireProfiles(w walk, body []byte) (Weight, error) {
	if !w.message(onlyDictionary, body, 0) {
		return w.end(false)
	}
	t := stringTable{stride: 1, steps: len(body)}
	t.index(body)
	w.strings = &t
	return w.end(w.message(onlyResources, body, 0))
}

// index reads the tables of a body that was walked before.
func (t *stringTable) index(body []byte) {
	for i := 0; i < len(body); {
		number, from, to := next(body, i)
		if i = to; number != 2 {
			continue
		}
		if t.dictionary != nil {
			t.steps = 0
		}
		t.dictionary = body[from:to]
		for i := 0; i < len(t.dictionary); {
			number, from, to := next(t.dictionary, i)
			if number == stringTableField {
				t.mark(i)
				t.longest = max(t.longest, chars(to-from))
			}
			i = to
		}
	}
}

// mark notes where the next string is. When there is no room, every other mark goes.
func (t *stringTable) mark(at int) {
	if t.n == t.stride*len(t.marks) {
		for i := range len(t.marks) / 2 {
			t.marks[i] = t.marks[2*i]
		}
		t.stride *= 2
	}
	if t.n%t.stride == 0 {
		t.marks[t.n/t.stride] = at
	}
	t.n++
}

// heap is what the string at an index takes, 0 if there is none.
func (t *stringTable) heap(index int) int64 {
	if index < 0 || index >= t.n {
		return 0
	}
	missing := index % t.stride
	for i := t.marks[index/t.stride]; t.steps > 0; t.steps-- {
		number, from, to := next(t.dictionary, i)
		if number == stringTableField {
			if missing == 0 {
				return chars(to - from)
			}
			missing--
		}
		i = to
	}
	return t.longest
}

// next reads the number of a field and where its content is. A field that cannot be read goes on to the end.
func next(b []byte, i int) (number int32, from, to int) {
	tag, i := varint(b, i)
	if i < 0 {
		return 0, 0, len(b)
	}
	if tag&7 == wireBytes {
		from, to = content(b, i)
	} else {
		from, to = i, skip(b, i, tag&7)
	}
	if to < 0 {
		to = len(b)
	}
	return int32(tag >> 3), from, to
}

// reference weighs a string that is given by its index, which stands at i.
func (w *walk) reference(k kind, b []byte, i int) {
	if w.strings == nil {
		if k == valueRef {
			w.memory += flat(sizeIndexValue)
		}
		return
	}
	index, _ := varint(b, i)
	w.memory += w.strings.heap(int(int32(index)))
	if k == valueRef {
		w.memory += object(sizeStringValue)
	}
}
