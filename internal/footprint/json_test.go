// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJSONSaysTheLiveHeap(t *testing.T) {
	t.Logf("%-40s %10s %10s %10s %7s", "batch", "JSON", "heap", "said", "error")
	for _, s := range corpus() {
		body, _, items := s.weighedJSON(t)
		encoded, measured, _ := s.jsonHeap(t)
		w, err := JSON(s.request(), body, 0)
		require.NoError(t, err, s.name)
		off := float64(w.Memory)/float64(measured) - 1
		t.Logf("%-40s %10d %10d %10d %+6.1f%%", s.name, encoded, measured, w.Memory, 100*off)
		assert.Equal(t, items, w.Items, s.name)
		if math.Abs(off) > margin && math.Abs(float64(w.Memory-measured)) > 16 {
			t.Errorf("%s: off by %+.1f%%", s.name, 100*off)
		}
	}
}

func TestJSONOfRandomTraces(t *testing.T)   { jsonOfRandom(t, tracesSignal) }
func TestJSONOfRandomMetrics(t *testing.T)  { jsonOfRandom(t, metricsSignal) }
func TestJSONOfRandomLogs(t *testing.T)     { jsonOfRandom(t, logsSignal) }
func TestJSONOfRandomProfiles(t *testing.T) { jsonOfRandom(t, profilesSignal) }

// jsonOfRandom compares with the decoded walk once that knows that no tiny objects share a block. Lists of 64-bit
// numbers, which the walk takes to fit exactly, leave up to half of their array free; and the strings that
// profiles refer to are counted once only.
func jsonOfRandom[T any](t *testing.T, s signal[T]) {
	packed := tinyAlone()
	defer packed()
	rapid.Check(t, func(r *rapid.T) {
		built, err := s.receive(drawRequest(r, s.is))
		if err != nil {
			r.Fatal(err)
		}
		body, err := s.toJSON(built)
		if err != nil {
			r.Fatal(err)
		}
		decoded, err := s.fromJSON(body)
		if err != nil {
			r.Fatal(err)
		}
		w, err := JSON(s.is, body, 0)
		said := s.weigh(decoded)
		least := said
		if s.is == ProfilesRequest {
			least /= 2
		}
		if err != nil || w.Memory < least || w.Memory > 2*said || w.Items != int64(s.items(decoded)) {
			r.Errorf("decoded %d bytes, %d items; as JSON %+v, %v: %s", said, s.items(decoded), w, err, body)
		}
	})
}
