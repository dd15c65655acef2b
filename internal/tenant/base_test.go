package tenant_test

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkBase(b *testing.B) {
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			mu.Unlock()
		}
	})
	b.Run("atomic", func(b *testing.B) {
		var a atomic.Int64
		for b.Loop() {
			a.Add(1)
		}
	})
	b.Run("timeadd", func(b *testing.B) {
		now := time.Now()
		for b.Loop() {
			now = now.Add(100)
		}
		_ = now
	})
	b.Run("timesub", func(b *testing.B) {
		now := time.Now()
		e := now
		var x time.Duration
		for b.Loop() {
			now = now.Add(100)
			x += now.Sub(e)
		}
		_ = x
	})
	s := maphash.MakeSeed()
	b.Run("hash", func(b *testing.B) {
		var x uint64
		for b.Loop() {
			x += maphash.String(s, "tenant-12345")
		}
		_ = x
	})
	m := map[string]int{"tenant-12345": 1}
	b.Run("map", func(b *testing.B) {
		var x int
		for b.Loop() {
			x += m["tenant-12345"]
		}
		_ = x
	})
	b.Run("now", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
}
