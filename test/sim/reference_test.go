// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/test/sim"
)

func TestFairBytes(t *testing.T) {
	flood := func(weight float64, batch int64) sim.Client {
		return sim.Client{Workers: 1000, Batch: batch, Limits: sim.Limits{Weight: weight}}
	}
	few := func(n int, batch int64) sim.Client { return sim.Client{Workers: n, Batch: batch} }
	under := func(l sim.Limits) sim.Client {
		return sim.Client{Workers: 1000, Batch: 1, Items: 10, Hold: time.Second, Limits: l}
	}
	for name, test := range map[string]struct {
		clients []sim.Client
		want    []float64
	}{
		"equal":                        {[]sim.Client{flood(1, 1), flood(1, 1)}, []float64{50, 50}},
		"weights":                      {[]sim.Client{flood(1, 1), flood(3, 1)}, []float64{25, 75}},
		"what one leaves is another's": {[]sim.Client{few(1, 10), flood(1, 1), flood(1, 1)}, []float64{10, 45, 45}},
		"all want little":              {[]sim.Client{few(1, 10), few(2, 10)}, []float64{10, 20}},
		"strangers are one": {
			[]sim.Client{flood(1, 1), under(sim.Limits{Stranger: true}), under(sim.Limits{Stranger: true})},
			[]float64{50, 25, 25},
		},
		"too wide":           {[]sim.Client{flood(1, 1), few(2, 60)}, []float64{100, 0}},
		"dominant":           {[]sim.Client{flood(1, 10), {Workers: 1000}}, []float64{1000.0 / 11, 0}},
		"a rate":             {[]sim.Client{flood(1, 1), under(sim.Limits{ItemsPerSecond: 200})}, []float64{80, 20}},
		"a part of the pool": {[]sim.Client{flood(1, 1), under(sim.Limits{Fraction: 0.2})}, []float64{80, 20}},
		"a limit of slots":   {[]sim.Client{flood(1, 1), under(sim.Limits{Slots: 30})}, []float64{70, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sim.FairBytes(sim.Pool{Capacity: 100, Slots: 100}, test.clients)
			for i := range got {
				require.Less(t, math.Abs(got[i]-test.want[i]), 0.01, "%v", got)
			}
		})
	}
}
