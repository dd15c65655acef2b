// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"math"
	"runtime/metrics"
	"time"
)

// Runtime is what Go says about its own memory at one moment.
type Runtime struct {
	MemoryLimit int64         // bytes; math.MaxInt64: none
	GCPercent   int64         // GOGC; negative: off
	Overhead    int64         // bytes that Go keeps beside the objects on its heap and the pages it has free
	Free        int64         // bytes of heap that Go keeps free and has not given back to the kernel
	Live        int64         // bytes of heap that the last collection found alive; 0 before the first
	GCs         int64         // collections so far
	ForcedGCs   int64         // of them, those that the program asked for
	GCTime      time.Duration // processor time that they took
	Procs       int64         // GOMAXPROCS
}

// RuntimeReader reads what Go says about its memory from runtime/metrics, which does not stop the world. The
// zero value is ready. Reading allocates nothing but for the first time. It is not safe for concurrent use.
type RuntimeReader struct {
	samples [len(runtimeMetrics)]metrics.Sample
}

// The order is that of the indexes in Read.
var runtimeMetrics = [...]string{
	"/gc/gomemlimit:bytes",
	"/gc/gogc:percent",
	"/memory/classes/total:bytes",
	"/memory/classes/heap/released:bytes",
	"/memory/classes/heap/objects:bytes",
	"/memory/classes/heap/free:bytes",
	"/gc/heap/live:bytes",
	"/gc/cycles/total:gc-cycles",
	"/gc/cycles/forced:gc-cycles",
	"/sched/gomaxprocs:threads",
	"/cpu/classes/gc/total:cpu-seconds",
}

// Read reads the figures of now. Those of garbage collection are as of the last one's end.
func (r *RuntimeReader) Read() Runtime {
	if r.samples[0].Name == "" {
		for i, name := range runtimeMetrics {
			r.samples[i].Name = name
		}
	}
	metrics.Read(r.samples[:])
	value := func(i int) int64 { return int64(r.samples[i].Value.Uint64()) } // GOGC off is 2^64-1, so -1 here
	return Runtime{
		MemoryLimit: value(0),
		GCPercent:   value(1),
		Overhead:    value(2) - value(3) - value(4) - value(5),
		Free:        value(5),
		Live:        value(6),
		GCs:         value(7),
		ForcedGCs:   value(8),
		Procs:       value(9),
		GCTime:      time.Duration(math.Round(r.samples[10].Value.Float64() * float64(time.Second))),
	}
}

// ReadRuntime reads the figures once. Who reads them again and again keeps a [RuntimeReader].
func ReadRuntime() Runtime { return new(RuntimeReader).Read() }
