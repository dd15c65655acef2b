// SPDX-License-Identifier: Apache-2.0

package pressure

// Sample is what was read at one moment. A figure that is 0, or whose limit is, is absent: it says nothing, for
// or against. What cannot be read must be absent, and not what it was before.
type Sample struct {
	Used, Capacity       int64   // bytes held, carried, on the wire, waiting and nobody's; the smaller of pool and budget
	Live, CriticalLive   int64   // bytes that the last collection found alive; what [CriticalLive] returns
	Unreclaimable, Limit int64   // bytes that the kernel cannot take back, less [Runtime.Free]; the memory limit
	StallSome, StallFull float64 // PSI: percent of the last ten seconds, of the cgroup and not of the machine
	MachineUsed, Machine int64   // bytes of the machine: all less what is available; all
}

// Cause is the figure that makes a level. The values are stable: they appear in logs.
type Cause string

const (
	CauseLive          Cause = "heap_live"     // bytes that the last collection found alive
	CauseUnreclaimable Cause = "unreclaimable" // bytes that the kernel cannot take back
	CauseStallFull     Cause = "stall_full"    // percent of time in which everything waited for memory
	CauseMachine       Cause = "machine"       // bytes used of the machine's
	CauseUsed          Cause = "memory_used"   // bytes used of what the process may use
	CauseStallSome     Cause = "stall_some"    // percent of time in which something waited for memory
)

// figure is what a sample says of one cause.
type figure struct {
	cause     Cause
	level     Level
	observed  int64
	mark, end int64 // from which it makes its level, and below which it ends it
	once      bool  // it must reach the mark again to make it
}

// figures are ordered by level, the highest first.
type figures [6]figure

// unreclaimable is the place among figures of that cause's.
const unreclaimable = 1

// stalled is the percentage of time held up for want of memory from which something must be done. It is meant to
// come long before somebody kills: systemd-oomd does at 60 % over 30 s unless told otherwise.
const stalled = 10

func (s LevelSettings) figures(of Sample) figures {
	bytes := func(c Cause, l Level, observed int64, limit float64) figure {
		mark := int64(min(limit, 1<<62)) // what is unbounded is never reached
		return figure{cause: c, level: l, observed: observed, mark: mark, end: mark - mark/10}
	}
	stall := func(c Cause, l Level, percent float64) figure {
		return figure{cause: c, level: l, observed: int64(percent), mark: stalled, end: stalled / 2}
	}
	return figures{
		bytes(CauseLive, Critical, of.Live, float64(of.CriticalLive)),
		unreclaimable: bytes(CauseUnreclaimable, Critical, of.Unreclaimable, s.Critical*float64(of.Limit)),
		stall(CauseStallFull, Critical, of.StallFull),
		bytes(CauseMachine, Critical, of.MachineUsed, s.Critical*(1-s.MachineReserve)*float64(of.Machine)),
		bytes(CauseUsed, Elevated, of.Used, s.Elevated*float64(of.Capacity)),
		stall(CauseStallSome, Elevated, of.StallSome),
	}
}

// of returns the figure of a cause, which is empty for none.
func (f *figures) of(c Cause) figure {
	for _, f := range f {
		if f.cause == c {
			return f
		}
	}
	return figure{}
}

func (f figure) reaches() bool { return f.mark > 0 && f.observed >= f.mark }

// makes reports whether f makes its level, and keeps whether it keeps it from ending.
func (f figure) makes() bool { return f.reaches() && !f.once }

func (f figure) keeps() bool { return f.mark > 0 && f.observed >= f.end }

// threshold returns the mark that f reaches, or else the one that it must stay below.
func (f figure) threshold() int64 {
	if f.reaches() {
		return f.mark
	}
	return f.end
}
