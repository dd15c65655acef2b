// SPDX-License-Identifier: Apache-2.0

// Command ratios prints what this project costs beside what its peers cost. Both sides of a pair take
// turns, so that what else the machine does falls on both.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"

	"github.com/otel-governor/otel-governor/benchmarks"
)

const confidence = 0.95

func main() {
	testing.Init()
	rounds := flag.Int("rounds", 21, "how often each side is measured")
	turn := flag.String("turn", "40ms", "how long it is measured each time")
	only := flag.String("only", "", "measure only the rows whose text matches this expression")
	flag.Parse()
	rows, err := regexp.Compile(*only)
	if err == nil {
		err = flag.Set("test.benchtime", *turn)
	}
	if err == nil {
		err = print(*rounds, *turn, rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// print measures and prints row by row.
func print(rounds int, turn string, rows *regexp.Regexp) error {
	fmt.Printf("%s %s/%s, %d Ps. Median of %d rounds, ours and its peer in turns of %s; ratios are medians of\n"+
		"those of each round, with the interval that holds the true one with %.0f %% confidence.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), rounds, turn, 100*confidence)
	what, ours, peer, goal := widths()
	line := func(cells ...any) {
		fmt.Printf("%-*s  %-*s %9s  %-*s %9s  %7s %-17s  %-*s  %s\n",
			append([]any{what, cells[0], ours, cells[1], cells[2], peer, cells[3], cells[4], cells[5], cells[6], goal}, cells[7:]...)...)
	}
	line("what", "ours", "ns", "peer", "ns", "ratio", "", "goal", "allocs ours/peer")
	for _, p := range benchmarks.Pairs {
		if !rows.MatchString(p.What) {
			continue
		}
		r, err := measure(p, rounds)
		if err != nil {
			return err
		}
		if p.Peer.Run == nil {
			line(p.What, p.Ours.Name, short(r.ours.ns()), "", "", "", "", p.Goal, short(r.ours.allocs()))
			continue
		}
		ratio := median(r.ratios)
		line(p.What, p.Ours.Name, short(r.ours.ns()), p.Peer.Name, short(r.peer.ns()),
			short(ratio.Center), fmt.Sprintf("[%s, %s]", short(ratio.Lo), short(ratio.Hi)), p.Goal,
			short(r.ours.allocs())+" / "+short(r.peer.allocs()))
	}
	return nil
}

// widths are those of the columns that the table of pairs tells beforehand.
func widths() (what, ours, peer, goal int) {
	for _, p := range benchmarks.Pairs {
		what = max(what, utf8.RuneCountInString(p.What))
		ours = max(ours, utf8.RuneCountInString(p.Ours.Name))
		peer = max(peer, utf8.RuneCountInString(p.Peer.Name))
		goal = max(goal, utf8.RuneCountInString(p.Goal))
	}
	return what, ours, peer, goal
}

// result is what one pair took.
type result struct {
	ours, peer side
	ratios     []float64 // of time, ours to peer's, a round each
}

// measure runs the sides of p in turns; who begins takes turns too.
func measure(p benchmarks.Pair, rounds int) (result, error) {
	var r result
	for round := range rounds {
		turns := []func() error{
			func() error { return r.ours.add(p.What, p.Ours) },
			func() error { return r.peer.add(p.What, p.Peer) },
		}
		for i := range turns {
			if err := turns[(round+i)%2](); err != nil {
				return r, err
			}
		}
		if p.Peer.Run != nil {
			r.ratios = append(r.ratios, last(r.ours.times)/last(r.peer.times))
		}
	}
	return r, nil
}

// side is what one side of a pair took for each operation, a round each.
type side struct {
	times       []float64 // ns
	allocations []float64
}

func (s *side) ns() float64     { return median(s.times).Center }
func (s *side) allocs() float64 { return median(s.allocations).Center }

// add measures c once more.
func (s *side) add(what string, c benchmarks.Case) error {
	if c.Run == nil {
		return nil
	}
	got := testing.Benchmark(c.Run)
	if got.N == 0 { // what it said is lost
		return fmt.Errorf("%s of %s failed: go test -bench . in benchmarks says why", what, c.Name)
	}
	s.times = append(s.times, float64(got.T.Nanoseconds())/float64(got.N))
	s.allocations = append(s.allocations, float64(got.MemAllocs)/float64(got.N))
	return nil
}

func median(values []float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence)
}

func last(values []float64) float64 { return values[len(values)-1] }

// short has two digits that say something at least, and no zeros behind the point.
func short(v float64) string {
	decimals := 0
	switch {
	case v < 0.1:
		decimals = 3
	case v < 10:
		decimals = 2
	case v < 100:
		decimals = 1
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', decimals, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
