// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWireSaysWhatTheDecodedWalkSays(t *testing.T) {
	for _, s := range corpus() {
		body, said, items := s.weighed(t)
		w, err := Wire(s.request(), body, 0)
		require.NoError(t, err, s.name)
		assert.Equal(t, Weight{Memory: said, Items: items}, w, s.name)
	}
}

// An attribute is taken at once in the order of pdata's encoder and in that of the SDKs', and for what the walk over
// its fields takes it.
func TestUsualAttributes(t *testing.T) {
	const key = "\x0a\x04name"
	for value, taken := range map[string]bool{
		"\x12\x07\x0a\x05hello": true,
		"\x12\x02\x0a\x00":      true,
		"\x12\x02\x10\x01":      true,
		"\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": true,
		"\x12\x09\x21\x00\x00\x00\x00\x00\x00\xf0\x3f":         true,
		"\x12\x02\x10\x80":         false, // a number without an end
		"\x12\x07\x0a\x06hello":    false, // longer than it is
		"\x12\x04\x10\x01\x10\x01": false, // twice
		"\x12\x00":                 false, // none
	} {
		for _, b := range []string{key + value, value + key} {
			heap, ok := usual([]byte(b))
			if ok != taken {
				t.Errorf("%q is taken at once: %v", b, ok)
			}
			w := walk{most: 1 << 30}
			if complete := w.message(keyValue, []byte(b), 0); ok && (!complete || w.memory != heap) {
				t.Errorf("%q is %d bytes, by its fields %d", b, heap, w.memory)
			}
		}
	}
}

func TestWireOfRandomTraces(t *testing.T)   { wireOfRandom(t, tracesSignal) }
func TestWireOfRandomMetrics(t *testing.T)  { wireOfRandom(t, metricsSignal) }
func TestWireOfRandomLogs(t *testing.T)     { wireOfRandom(t, logsSignal) }
func TestWireOfRandomProfiles(t *testing.T) { wireOfRandom(t, profilesSignal) }

// wireOfRandom holds Wire to the decoded walk: never less for any encoding, and equal for pdata's own.
func wireOfRandom[T any](t *testing.T, s signal[T]) {
	rapid.Check(t, func(r *rapid.T) {
		body := drawRequest(r, s.is)
		decoded, err := s.receive(body)
		if err != nil {
			r.Fatalf("a request that pdata does not decode shows nothing: %v", err)
		}
		assertNotLess(r, s, body, decoded)
		damaged := damage(r, body)
		if decoded, err := s.receive(damaged); err == nil {
			assertNotLess(r, s, damaged, decoded)
		}

		canonical, err := s.marshal(decoded)
		if err != nil {
			r.Fatal(err)
		}
		if decoded, err = s.receive(canonical); err != nil {
			r.Fatal(err)
		}
		w, err := Wire(s.is, canonical, 0)
		if want := (Weight{Memory: s.weigh(decoded), Items: int64(s.items(decoded))}); err != nil || w != want {
			r.Errorf("decoded %+v, on the wire %+v, %v: %x", want, w, err, canonical)
		}
	})
}

func assertNotLess[T any](t interface{ Errorf(string, ...any) }, s signal[T], body []byte, decoded T) {
	w, err := Wire(s.is, body, 0)
	if memory, items := s.weigh(decoded), int64(s.items(decoded)); err != nil || w.Memory < memory || w.Items < items {
		t.Errorf("decoded %d bytes, %d items; on the wire %+v, %v: %x", memory, items, w, err, body)
	}
}

// damage returns the body with one byte changed.
func damage(r *rapid.T, body []byte) []byte {
	damaged := bytes.Clone(body)
	if len(body) > 0 {
		damaged[rapid.IntRange(0, len(body)-1).Draw(r, "at")] = rapid.Byte().Draw(r, "byte")
	}
	return damaged
}
