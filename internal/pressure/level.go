// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"sync"
	"sync/atomic"
	"time"
)

// Level is how hard pressed the process is.
type Level int32

const (
	OK       Level = iota
	Elevated       // whoever takes more than his share is held to it
	Critical       // nothing new is let in
)

// String returns the name that the level has in logs.
func (l Level) String() string { return [...]string{"ok", "elevated", "critical"}[l] }

// LevelSettings are the marks of the levels.
type LevelSettings struct {
	Hold           time.Duration
	Elevated       float64 // of the capacity, used
	Critical       float64 // of the limit, unreclaimable; of the machine less its reserve
	MachineReserve float64 // of the machine
}

// Levels say how hard pressed the process is. All methods are safe for concurrent use.
//
// Every figure has a mark that makes its level, and a lower one that it must fall below to end it: by a tenth where
// it counts bytes, by half where it is a stall, whose average of ten seconds takes some to fall. Danger is answered at
// once. A level ends when all of its figures have been below the lower mark for the hold, and not before twice the
// hold has passed since it began, so that load which swings around a mark, however fast or wide, makes at most one
// change per hold.
type Levels struct {
	settings LevelSettings
	level    atomic.Int32 // as in the state

	mu struct {
		sync.Mutex
		state   State
		pressed time.Time // when a figure last made the level or kept it
		full    bool      // the last sample was over the mark of what is unreclaimable
	}
}

// State is a level and why it is that.
type State struct {
	Level Level
	Since time.Time
	Cause Cause // what made it or keeps it; empty if the level is OK
	// Observed is the figure of the cause as of the last sample, and Threshold the mark that it reaches or, once it
	// does no more, the lower one that it must stay below. Both are in the cause's unit.
	Observed, Threshold int64
}

// Transition is a change of level. Its cause and figures are those that made the new level or, where that is
// lower, those that had made the old one and do no longer.
type Transition struct {
	From, To            Level
	Lasted              time.Duration // the old level
	Cause               Cause
	Observed, Threshold int64
}

// NewLevels returns levels that are OK as of now.
func NewLevels(now time.Time, s LevelSettings) *Levels {
	l := &Levels{settings: s}
	l.mu.state.Since = now
	return l
}

// Level returns the level as of the last sample. It takes no lock.
func (l *Levels) Level() Level { return Level(l.level.Load()) }

// State returns the level and why it is that, as of the last sample.
func (l *Levels) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.state
}

// Observe takes a sample and returns whether it changed the level.
func (l *Levels) Observe(now time.Time, s Sample) (t Transition, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	figures := l.settings.figures(s)
	full := figures[unreclaimable].reaches()
	figures[unreclaimable].once = !l.mu.full // a single reading may catch what is about to be given back
	l.mu.full = full

	level, cause := l.mu.state.Level, figures.of(l.mu.state.Cause)
	why := figure{} // of the level that the sample speaks for
	if cause.keeps() {
		why = cause
	}
	for _, f := range figures {
		if f.level > why.level && (f.makes() || f.level <= level && f.keeps()) {
			why = f
		}
	}
	switch {
	case why.level >= level:
		l.mu.pressed = now
	case now.Sub(l.mu.pressed) < l.settings.Hold, now.Sub(l.mu.state.Since) < 2*l.settings.Hold:
		why = cause
	}
	before := l.mu.state
	l.mu.state = State{
		Level: why.level, Since: before.Since,
		Cause: why.cause, Observed: why.observed, Threshold: why.threshold(),
	}
	if why.level == level {
		return t, false
	}
	l.mu.state.Since = now
	l.level.Store(int32(why.level))
	if why.level > level {
		cause = why
	}
	return Transition{
		From: level, To: why.level, Lasted: now.Sub(before.Since),
		Cause: cause.cause, Observed: cause.observed, Threshold: cause.threshold(),
	}, true
}
