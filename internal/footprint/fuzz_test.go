// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzWire holds Wire to pdata: what that decodes is weighed, at no less than the decoded walk says.
func FuzzWire(f *testing.F) {
	for _, s := range corpus() {
		if body := s.wire(f); len(body) < 1_000 {
			f.Add(body)
		}
	}
	for _, body := range oddBodies {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		wireOf(t, tracesSignal, body)
		wireOf(t, metricsSignal, body)
		wireOf(t, logsSignal, body)
		wireOf(t, profilesSignal, body)
	})
}

func wireOf[T any](t *testing.T, s signal[T], body []byte) {
	w, err := Wire(s.is, body, 0)
	if err == nil && s.is != ProfilesRequest { // which count shared strings each time
		assert.LessOrEqual(t, w.Memory, WorstCase(s.is, len(body)))
	}
	if decoded, err := s.receive(body); err == nil {
		assertNotLess(t, s, body, decoded)
	}
}

// FuzzJSON holds JSON to pdata: what that decodes is refused, or weighed at no less than the decoded walk says.
func FuzzJSON(f *testing.F) {
	for _, s := range corpus() {
		if body, _, _ := s.weighedJSON(f); len(body) < 1_000 {
			f.Add(body)
		}
	}
	for _, c := range jsonBodies {
		f.Add([]byte(c.body))
	}
	for _, body := range noJSON {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		jsonOf(t, tracesSignal, body)
		jsonOf(t, metricsSignal, body)
		jsonOf(t, logsSignal, body)
		jsonOf(t, profilesSignal, body)
	})
}

func jsonOf[T any](t *testing.T, s signal[T], body []byte) {
	w, refused := JSON(s.is, body, 0)
	decoded, err := s.fromJSON(body)
	if err != nil || refused != nil || s.is == ProfilesRequest && bytes.Contains(body, []byte("trindex")) {
		return
	}
	assert.GreaterOrEqual(t, w.Memory, s.weigh(decoded))
	assert.GreaterOrEqual(t, w.Items, int64(s.items(decoded)))
}
