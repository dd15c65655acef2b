// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// collection is one of Go's garbage collections, as GODEBUG=gctrace=1 tells of it (package runtime, "Environment
// Variables").
type collection struct {
	cpu    time.Duration // of all processors, those that had nothing else to do included
	live   int64         // bytes found alive, in whole MiB
	procs  int64
	forced bool // the program asked for it
}

// parseCollection reads a line such as
//
//	gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.84 ms cpu, 4->4->1 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 8 P (forced)
func parseCollection(line string) (c collection, ok bool) {
	head, rest, found := strings.Cut(line, " ms clock, ")
	if !found || !strings.HasPrefix(head, "gc ") {
		return collection{}, false
	}
	rest, c.forced = strings.CutSuffix(rest, " (forced)")
	parts := strings.Split(rest, ", ")
	if len(parts) != 6 {
		return collection{}, false
	}
	times, isTimes := strings.CutSuffix(parts[0], " ms cpu")
	heap, isHeap := strings.CutSuffix(parts[1], " MB")
	procs, isProcs := strings.CutSuffix(parts[5], " P")
	if !isTimes || !isHeap || !isProcs {
		return collection{}, false
	}
	for _, ms := range strings.FieldsFunc(times, func(r rune) bool { return r == '+' || r == '/' }) {
		d, err := time.ParseDuration(ms + "ms")
		if err != nil {
			return collection{}, false
		}
		c.cpu += d
	}
	sizes := strings.Split(heap, "->")
	live, err := strconv.ParseInt(sizes[len(sizes)-1], 10, 32)
	if err != nil {
		return collection{}, false
	}
	c.live = live * mib
	c.procs, err = strconv.ParseInt(procs, 10, 32)
	return c, err == nil && c.procs > 0
}

// gcTrace takes in what a traced process writes to stderr.
type gcTrace struct {
	others *logbook // for what is no collection's

	mu    sync.Mutex
	begun []byte // a line
	all   []collection
	at    []time.Time // when they were told of
}

// Write implements io.Writer.
func (g *gcTrace) Write(text []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun = append(g.begun, text...)
	for {
		line, rest, whole := bytes.Cut(g.begun, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if c, ok := parseCollection(string(line)); ok {
			g.all, g.at = append(g.all, c), append(g.at, time.Now())
		} else if len(line) > 0 {
			g.others.add(string(line))
		}
		g.begun = rest
	}
}

// gcs is what collections did in a while.
type gcs struct {
	count, forced      int
	share, forcedShare float64       // of all processors
	live               int64         // bytes: the most that one found alive
	dearest            time.Duration // the most that one took of all processors
}

// between sums up the collections of a time that has passed.
func (g *gcTrace) between(from, to time.Time) (s gcs) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.all {
		if g.at[i].Before(from) || g.at[i].After(to) {
			continue
		}
		share := c.cpu.Seconds() / to.Sub(from).Seconds() / float64(c.procs)
		s.count, s.share, s.live = s.count+1, s.share+share, max(s.live, c.live)
		s.dearest = max(s.dearest, c.cpu/time.Duration(c.procs))
		if c.forced {
			s.forced, s.forcedShare = s.forced+1, s.forcedShare+share
		}
	}
	return s
}

func (s gcs) String() string {
	return fmt.Sprintf("%d GCs of %.1f %% of the processors, of them forced %d of %.1f %%; one took %v at most; live at most %d MiB",
		s.count, 100*s.share, s.forced, 100*s.forcedShare, s.dearest.Round(time.Millisecond), s.live/mib)
}

func TestCollectionsAreReadFromTheTrace(t *testing.T) {
	l := newLogbook()
	g := &gcTrace{others: l}
	began := time.Now()
	for _, part := range []string{
		"gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.25+0.5/0.5/0.75+1 ms cpu, 4->5->1 MB, 5 MB goal, 0 MB stacks, ",
		"0 MB globals, 8 P\npanic: somebody\n\ngc 2",
		" @1.012s 2%: 0+16+0 ms clock, 2+0/29/3+0 ms cpu, 40->50->31 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)\ngc 3 @",
	} {
		if n, err := g.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	want := []collection{
		{cpu: 3 * time.Millisecond, live: mib, procs: 8},
		{cpu: 34 * time.Millisecond, live: 31 * mib, procs: 2, forced: true},
	}
	if !reflect.DeepEqual(g.all, want) {
		t.Errorf("%v, want %v", g.all, want)
	}
	if l.text() != "panic: somebody" {
		t.Errorf("the rest is %q", l.text())
	}
	if s := g.between(began, began.Add(time.Hour)); s.count != 2 || s.forced != 1 || s.live != 31*mib {
		t.Errorf("in an hour: %v", s)
	}
	if s := g.between(began.Add(-time.Hour), began.Add(-time.Minute)); s != (gcs{}) {
		t.Errorf("before: %v", s)
	}
}

func FuzzParseCollection(f *testing.F) {
	const line = "gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.84 ms cpu, 4->4->1 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 8 P"
	f.Add(line)
	f.Add(line + " (forced)")
	f.Fuzz(func(t *testing.T, line string) {
		c, ok := parseCollection(line)
		if ok && (c.procs < 1 || c.forced != strings.HasSuffix(line, " (forced)")) {
			t.Errorf("%q: %+v", line, c)
		}
	})
}
