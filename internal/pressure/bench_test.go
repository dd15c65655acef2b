// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkEndGone is what the books cost a batch.
func BenchmarkEndGone(b *testing.B) {
	books := NewBooks(start, Settings{})
	var c Carrier
	c.Init(func(int64) {})
	b.ReportAllocs()
	for b.Loop() {
		var l Left
		books.End(&l, &c, 1000)
		books.Gone(&l)
	}
}

// BenchmarkTick is what they cost every 100 ms, with what each carrier carries being told to it anew.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n, " carriers"), func(b *testing.B) {
			books := NewBooks(start, Settings{})
			carriers := make([]Carrier, n)
			var told int
			for i := range carriers {
				carriers[i].Init(func(int64) { told++ })
				books.End(new(Left), &carriers[i], mib)
				carriers[i].drain = 1000
			}
			collected(books, start, Runtime{})
			now := start
			for b.Loop() {
				now = now.Add(time.Millisecond)
				books.Tick(now, 0)
			}
			b.ReportMetric(float64(told)/float64(b.N), "told/op")
		})
	}
}

// BenchmarkObserve is what a sample costs.
func BenchmarkObserve(b *testing.B) {
	l := NewLevels(start, levelSettings)
	s := Sample{Used: 1, Capacity: 1000, Live: 1, CriticalLive: 870, Unreclaimable: 1, Limit: 1000, MachineUsed: 1, Machine: 1000}
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(start, s)
	}
}

func BenchmarkReadRuntime(b *testing.B) {
	var r RuntimeReader
	b.ReportAllocs()
	for b.Loop() {
		r.Read()
	}
}
