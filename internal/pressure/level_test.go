// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var levelSettings = LevelSettings{Hold: time.Second, Elevated: 0.85, Critical: 0.95, MachineReserve: 0.1}

// observe takes one sample after another, 100 ms apart, and returns the levels and the transitions.
func observe(l *Levels, from time.Time, samples ...Sample) (levels []Level, transitions []Transition) {
	for i, s := range samples {
		if t, changed := l.Observe(from.Add(time.Duration(i)*100*time.Millisecond), s); changed {
			transitions = append(transitions, t)
		}
		levels = append(levels, l.Level())
	}
	return levels, transitions
}

func times(n int, s Sample) []Sample {
	samples := make([]Sample, n)
	for i := range samples {
		samples[i] = s
	}
	return samples
}

func TestWhatMakesALevel(t *testing.T) {
	healthy := Sample{
		Used: 849, Capacity: 1000, Live: 869, CriticalLive: 870, Unreclaimable: 949, Limit: 1000,
		StallSome: 9.99, StallFull: 9.99, MachineUsed: 8549, Machine: 10_000,
	}
	for name, tt := range map[string]struct {
		change              func(*Sample)
		want                Level
		cause               Cause
		observed, threshold int64
	}{
		"all just below":         {func(*Sample) {}, OK, "", 0, 0},
		"used":                   {func(s *Sample) { s.Used = 850 }, Elevated, CauseUsed, 850, 850},
		"something stalls":       {func(s *Sample) { s.StallSome = 10 }, Elevated, CauseStallSome, 10, 10},
		"live heap":              {func(s *Sample) { s.Live = 870 }, Critical, CauseLive, 870, 870},
		"unreclaimable":          {func(s *Sample) { s.Unreclaimable = 950 }, Critical, CauseUnreclaimable, 950, 950},
		"everything stalls":      {func(s *Sample) { s.StallFull = 12.5 }, Critical, CauseStallFull, 12, 10},
		"the machine":            {func(s *Sample) { s.MachineUsed = 8550 }, Critical, CauseMachine, 8550, 8550},
		"the worst of all":       {func(s *Sample) { s.Used, s.StallFull = 1000, 10 }, Critical, CauseStallFull, 10, 10},
		"all absent":             {func(s *Sample) { *s = Sample{} }, OK, "", 0, 0},
		"all limits absent":      {func(s *Sample) { *s = Sample{Used: 1, Live: 1, Unreclaimable: 1, MachineUsed: 1} }, OK, "", 0, 0},
		"nothing bounds heap":    {func(s *Sample) { s.CriticalLive = Unbounded }, OK, "", 0, 0},
		"nothing at all is used": {func(s *Sample) { s.Used = 0 }, OK, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy
			tt.change(&s)
			l := NewLevels(start, levelSettings)
			levels, transitions := observe(l, start, s, s, s)
			require.Equal(t, tt.want, levels[2])
			state := l.State()
			require.Equal(t, tt.want, state.Level)
			if tt.want == OK {
				require.Empty(t, transitions)
				require.Equal(t, State{Since: start}, state)
				return
			}
			require.Len(t, transitions, 1)
			got := transitions[0]
			require.Equal(t, Transition{OK, tt.want, got.Lasted, tt.cause, tt.observed, tt.threshold}, got)
			require.Equal(t, State{tt.want, start.Add(got.Lasted), tt.cause, tt.observed, tt.threshold}, state)
		})
	}
}

func TestUnreclaimableTakesTwoSamplesRunning(t *testing.T) {
	over, under := Sample{Unreclaimable: 950, Limit: 1000}, Sample{Unreclaimable: 100, Limit: 1000}
	levels, _ := observe(NewLevels(start, levelSettings), start,
		over, under, over, Sample{}, over, under, over, over, over)
	require.Equal(t, []Level{OK, OK, OK, OK, OK, OK, OK, Critical, Critical}, levels)
}

func TestLevelEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		made, kept, ended Sample
	}{
		"used":           {Sample{Used: 850}, Sample{Used: 765}, Sample{Used: 764}},
		"some":           {Sample{StallSome: 10}, Sample{StallSome: 5}, Sample{StallSome: 4.99}},
		"live":           {Sample{Live: 870}, Sample{Live: 783}, Sample{Live: 782}},
		"full":           {Sample{StallFull: 10}, Sample{StallFull: 5}, Sample{StallFull: 4.99}},
		"machine":        {Sample{MachineUsed: 8550}, Sample{MachineUsed: 7695}, Sample{MachineUsed: 7694}},
		"unreclaimable":  {Sample{Unreclaimable: 950}, Sample{Unreclaimable: 855}, Sample{Unreclaimable: 854}},
		"no longer read": {Sample{StallFull: 10}, Sample{StallFull: 5}, Sample{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []*Sample{&tt.made, &tt.kept, &tt.ended} {
				s.Capacity, s.CriticalLive, s.Limit, s.Machine = 1000, 870, 1000, 10_000
			}
			l := NewLevels(start, levelSettings)
			observe(l, start, tt.made, tt.made)
			made := l.State()
			require.NotEqual(t, OK, made.Level)

			observe(l, start.Add(time.Minute), times(100, tt.kept)...)
			require.Equal(t, made.Level, l.Level())
			require.Equal(t, made.Since, l.State().Since)
			require.Less(t, l.State().Observed, made.Observed)

			last := start.Add(time.Minute + 9900*time.Millisecond)
			_, changed := l.Observe(last.Add(999*time.Millisecond), tt.ended)
			require.False(t, changed, "calm for the hold")
			ended, changed := l.Observe(last.Add(time.Second), tt.ended)
			require.True(t, changed)
			require.Equal(t, made.Cause, ended.Cause)
			require.Equal(t, [...]Level{made.Level, OK}, [...]Level{ended.From, ended.To})
			require.Less(t, ended.Observed, ended.Threshold)
			require.Equal(t, last.Add(time.Second).Sub(made.Since), ended.Lasted)
			require.Equal(t, State{Since: last.Add(time.Second)}, l.State())
		})
	}
}

func TestLevelHolds(t *testing.T) {
	l := NewLevels(start, levelSettings)
	levels, transitions := observe(l, start, append([]Sample{{StallFull: 50}}, times(30, Sample{})...)...)
	require.Equal(t, Critical, levels[19])
	require.Equal(t, OK, levels[20], "after twice the hold")
	require.Len(t, transitions, 2)
}

// Critical ends in what is left of elevated, and not in what would make it anew.
func TestCriticalFallsToElevated(t *testing.T) {
	l := NewLevels(start, levelSettings)
	_, transitions := observe(l, start, append(
		times(5, Sample{StallFull: 50, Used: 900, Capacity: 1000}),
		times(40, Sample{Used: 800, Capacity: 1000})...)...)
	require.Len(t, transitions, 2)
	require.Equal(t, Transition{Critical, Elevated, 2 * time.Second, CauseStallFull, 0, 5}, transitions[1])
	require.Equal(t, State{Elevated, start.Add(2 * time.Second), CauseUsed, 800, 765}, l.State())
}

func TestDangerIsAnsweredAtOnce(t *testing.T) {
	l := NewLevels(start, levelSettings)
	levels, transitions := observe(l, start, Sample{}, Sample{StallSome: 10}, Sample{StallFull: 10})
	require.Equal(t, []Level{OK, Elevated, Critical}, levels)
	require.Len(t, transitions, 2)
	require.Equal(t, start.Add(200*time.Millisecond), l.State().Since)
}

// Load that swings around a mark for 30 s, at any pace and by any width, makes at most one change per hold.
func TestSwingingLoadDoesNotFlap(t *testing.T) {
	for _, hold := range []time.Duration{time.Second, 3 * time.Second} {
		for _, high := range []int{1, 2, 3, 5, 9, 10, 11, 15, 20, 30, 50} { // samples of 100 ms
			for _, low := range []int{1, 2, 5, 9, 10, 11, 12, 19, 20, 21, 30, 50} {
				settings := levelSettings
				settings.Hold = hold
				l := NewLevels(start, settings)
				var samples []Sample
				for len(samples) < 300 {
					samples = append(samples, times(high, Sample{StallFull: 100, Used: 1000, Capacity: 1000})...)
					samples = append(samples, times(low, Sample{StallFull: 0, Used: 0, Capacity: 1000})...)
				}
				_, transitions := observe(l, start, samples[:300]...)
				require.LessOrEqual(t, len(transitions), int(30*time.Second/hold), "%d high, %d low", high, low)
				if low < int(hold/(100*time.Millisecond)) {
					require.Len(t, transitions, 1, "no calm as long as the hold: %d high, %d low", high, low)
				}
			}
		}
	}
}

// Where live heap made the level, everything is refused and nothing allocates, so that Go would not look again for
// two minutes: refusals start the collection that ends it.
func TestCriticalLiveHeapDoesNotLatch(t *testing.T) {
	const critical = 100 * mib
	b := NewBooks(start, Settings{GCFraction: 0.02})
	l := NewLevels(start, levelSettings)
	live := int64(critical)
	collected(b, start, Runtime{Live: live})
	var collections []time.Time
	var ended time.Time
	for at := start; at.Before(start.Add(20 * time.Second)); at = at.Add(100 * time.Millisecond) {
		l.Observe(at, Sample{Live: live, CriticalLive: critical})
		if l.Level() == OK {
			ended = at
			break
		}
		if b.Refused(at) {
			collections = append(collections, at)
			if len(collections) == 3 {
				live = critical / 2 // an exporter came back meanwhile
			}
			collected(b, at, Runtime{Live: live})
		}
	}
	require.Len(t, collections, 3)
	require.Equal(t, start.Add(6*time.Second), collections[2])
	require.Equal(t, start.Add(7*time.Second), ended, "the hold after the last collection")
}
