// SPDX-License-Identifier: Apache-2.0

// Package pressure answers how full the process is: what Go can hold without losing itself in garbage
// collection.
package pressure

import (
	"math"
	"runtime/metrics"
)

// Runtime is what Go says about its own memory at one moment.
type Runtime struct {
	MemoryLimit int64 // bytes; math.MaxInt64: none
	GCPercent   int64 // GOGC; negative: off
	Overhead    int64 // bytes that Go keeps beside the objects on its heap and the pages it has free
}

// ReadRuntime reads the figures from runtime/metrics, which does not stop the world.
func ReadRuntime() Runtime {
	samples := []metrics.Sample{
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/gogc:percent"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) } // GOGC off is 2^64-1, so -1 here
	return Runtime{
		MemoryLimit: value(0),
		GCPercent:   value(1),
		Overhead:    value(2) - value(3) - value(4) - value(5),
	}
}

// Budget returns the bytes of live heap that Go can hold in a process limited to limit bytes, when
// headroom of what it can hold is left to garbage. It is never negative, and [Unbounded] if nothing
// bounds the heap: no memory limit for Go, and either no limit for the process or no garbage collection.
//
// With a memory limit Go collects ever more often as live heap approaches it: at a headroom of a quarter
// it marks three bytes for every byte allocated. The factor 0.97 is what the collector itself leaves
// before its limit. Without one, Go lets garbage grow to GOGC percent of live heap, and a tenth of the
// process's limit is left to what is not heap.
func Budget(r Runtime, limit int64, headroom float64) int64 {
	switch {
	case r.MemoryLimit < math.MaxInt64:
		return max(0, int64((1-headroom)*0.97*float64(r.MemoryLimit-r.Overhead)))
	case limit > 0 && r.GCPercent >= 0:
		return max(0, int64(0.9*float64(limit)/(1+float64(r.GCPercent)/100))-r.Overhead)
	default:
		return Unbounded
	}
}

// Unbounded is the budget of a process whose heap nothing bounds.
const Unbounded = math.MaxInt64
