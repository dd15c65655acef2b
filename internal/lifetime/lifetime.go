// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"runtime"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Watch follows the data of one batch without keeping it alive. A nil Watch follows
// nothing.
type Watch struct {
	// Then and the end of the data: whichever comes second calls gone. A weak pointer
	// would need no count, but whoever makes it strong again waits while a collection
	// ends: a goroutine that decodes and follows batches saw a quarter more of them.
	ends atomic.Int32
	gone func()
}

// Traces returns a Watch on td's data, or nil if it cannot be followed. Like its
// siblings, it is for before the batch is passed on, when nobody else changes it:
// afterwards the batch may be empty. It only reads. A Watch may be forgotten.
func Traces(td ptrace.Traces) *Watch { return follow(lastSpan(td)) }

// Metrics returns a Watch on md's data, or nil if it cannot be followed.
func Metrics(md pmetric.Metrics) *Watch { return follow(lastDataPoint(md)) }

// Logs returns a Watch on ld's data, or nil if it cannot be followed.
func Logs(ld plog.Logs) *Watch { return follow(lastLogRecord(ld)) }

// Profiles returns a Watch on pd's data, or nil if it cannot be followed.
func Profiles(pd pprofile.Profiles) *Watch { return follow(lastSample(pd)) }

// Then has gone called once the data is gone: before it returns, if the data is
// gone already or w is nil, and else by a goroutine of the runtime, after the first
// garbage collection that begins once the data was dropped. It is for one call.
// gone is called exactly once, or never if the data outlives the process. It must
// be short, since other cleanups of the process wait for it, must not panic, which
// would end the process, and must not refer to the batch, which would keep it for
// ever.
func (w *Watch) Then(gone func()) {
	if w == nil {
		gone()
		return
	}
	w.gone = gone
	w.end()
}

func (w *Watch) end() {
	if w.ends.Add(1) == 2 {
		w.gone()
	}
}

// follow returns a Watch on the object behind record, which is one of pdata's
// wrappers or nil.
func follow(record any) *Watch {
	object := behind(record)
	if object == nil || pooled() {
		return nil
	}
	w := new(Watch)
	runtime.AddCleanup(object, (*Watch).end, w)
	return w
}
