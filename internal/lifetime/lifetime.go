// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"runtime"
	"weak"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Watch follows the data of one batch without keeping it alive. The zero Watch
// follows nothing. A Watch is a value: it may be copied, compared with the zero
// Watch and forgotten, and is safe for concurrent use.
type Watch struct {
	// Weak, so that data which dies before Then is known to be gone at that
	// moment and is not held until then.
	last weak.Pointer[byte]
}

// Traces returns a Watch on td's data, or the zero Watch if it cannot be followed.
// Like its siblings, it is for before the batch is passed on, when nobody else
// changes it: afterwards the batch may be empty. It only reads.
func Traces(td ptrace.Traces) Watch {
	return follow(lastIn(td.ResourceSpans(), ptrace.ResourceSpans.ScopeSpans, func(s ptrace.ScopeSpans) any {
		return last(s.Spans(), itself)
	}))
}

// Metrics returns a Watch on md's data, or the zero Watch if it cannot be followed.
func Metrics(md pmetric.Metrics) Watch {
	return follow(lastIn(md.ResourceMetrics(), pmetric.ResourceMetrics.ScopeMetrics, func(s pmetric.ScopeMetrics) any {
		return last(s.Metrics(), lastPoint)
	}))
}

// Logs returns a Watch on ld's data, or the zero Watch if it cannot be followed.
func Logs(ld plog.Logs) Watch {
	return follow(lastIn(ld.ResourceLogs(), plog.ResourceLogs.ScopeLogs, func(s plog.ScopeLogs) any {
		return last(s.LogRecords(), itself)
	}))
}

// Profiles returns a Watch on pd's data, or the zero Watch if it cannot be followed.
func Profiles(pd pprofile.Profiles) Watch {
	return follow(lastIn(pd.ResourceProfiles(), pprofile.ResourceProfiles.ScopeProfiles, func(s pprofile.ScopeProfiles) any {
		return last(s.Profiles(), func(p pprofile.Profile) any { return last(p.Samples(), itself) })
	}))
}

// Then has gone called once the data is gone: before it returns, if the data is
// gone already or w is the zero Watch, and else by a goroutine of the runtime, after
// the first garbage collection that begins once the data was dropped. Each gone is
// called exactly once, or never if the data outlives the process. It must be short,
// since other cleanups of the process wait for it, must not panic, which would end
// the process, and must not refer to the batch, which would keep it for ever.
func (w Watch) Then(gone func()) {
	record := w.last.Value()
	if record == nil {
		gone()
		return
	}
	runtime.AddCleanup(record, func(gone func()) { gone() }, gone)
}
