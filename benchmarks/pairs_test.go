// SPDX-License-Identifier: Apache-2.0

package benchmarks

import "testing"

func BenchmarkPairs(b *testing.B) {
	for _, p := range Pairs {
		b.Run(p.What, func(b *testing.B) {
			for _, c := range []Case{p.Ours, p.Peer} {
				if c.Run == nil {
					continue
				}
				b.Run(c.Name, func(b *testing.B) {
					b.ReportAllocs()
					c.Run(b)
				})
			}
		})
	}
}
