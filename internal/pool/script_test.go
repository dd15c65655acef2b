// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// play runs a story in virtual time. Each line is a step, a bar, and the answers that came in that step;
// whoever is not named there waits. The steps, with n in bytes and [..] optional:
//
//	A acquire n [gate] [account=x] [others=y:n,z:n] [provisional] [debt] [left=50ms]    makes lease A
//	A grow n [left=50ms]                             is answered as A+
//	b settle A n [gate] [debt] [left=50ms]           makes part b; account and others as above
//	A owe n                                          adds to it what is there already
//	A release [x n]                                  ends it, and leaves n bytes to account x
//	x carry n                                        adds to what account x carries, or takes off
//	A leave                                          ends the context that A was made with, A+ leave that of its growth
//	pass 200ms | resize n | squeeze n | beside n | drain | close
//	x limits [weight=2] [fraction=0.5] [slots=n] [queued=n] [stranger]       sets those of an account
//	= held n used n queued n growing n               states the ledger, and does nothing
//	= x n in n                                       states the bytes of an account, and its slots
//
// The gate, where named, is one for all and lets a single lease pass. The story ends with everything
// released, everybody answered, and a ledger of zeros.
func play(t *testing.T, settings pool.Settings, story string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, settings)
		for line := range strings.Lines(story) {
			if line = strings.TrimSpace(line); line != "" {
				s.step(line)
			}
		}
		s.end()
	})
}

// small is a pool for stories: big enough for two, with a line that stories do not fill by accident.
func small() pool.Settings {
	return pool.Settings{Capacity: 100, Slots: 4, MaxQueued: 8, MaxQueuedBytes: 1000, QueueTimeout: 200 * time.Millisecond}
}

type stage struct {
	t        *testing.T
	settings pool.Settings
	pool     *pool.Pool
	gate     *pool.Gate
	accounts map[string]*pool.Account
	leases   map[string]*pool.Lease
	carried  map[*pool.Account]int64
	leave    map[string]context.CancelFunc
	waiting  map[string]bool
	answers  chan string
}

func newStage(t *testing.T, settings pool.Settings) *stage {
	return &stage{
		t:        t,
		settings: settings,
		pool:     pool.New(settings),
		gate:     pool.NewGate(1),
		accounts: map[string]*pool.Account{},
		leases:   map[string]*pool.Lease{},
		carried:  map[*pool.Account]int64{},
		leave:    map[string]context.CancelFunc{},
		waiting:  map[string]bool{},
		answers:  make(chan string, 100),
	}
}

// step does what line says and compares the answers.
func (s *stage) step(line string) {
	s.t.Helper()
	if state, ok := strings.CutPrefix(line, "= "); ok {
		if a := s.accounts[strings.Fields(state)[0]]; a != nil {
			held, used := s.pool.AccountStats(a)
			require.Equal(s.t, state, fmt.Sprintf("%s %d in %d", strings.Fields(state)[0], held, used), line)
			return
		}
		require.Equal(s.t, state, s.state(), line)
		return
	}
	do, want, _ := strings.Cut(line, "|")
	s.do(strings.Fields(do))
	require.Equal(s.t, strings.TrimSpace(want), strings.Join(s.answered(), ", "), line)
	s.audit()
}

func (s *stage) do(words []string) {
	s.t.Helper()
	if verb := words[0]; len(words) == 1 {
		map[string]func(){"drain": s.pool.Drain, "close": s.pool.Close}[verb]()
		return
	}
	switch name, verb, rest := words[0], words[1], words[2:]; {
	case name == "pass":
		d, err := time.ParseDuration(verb)
		require.NoError(s.t, err)
		<-time.After(d)
	case name == "resize":
		s.pool.Resize(pool.Size{Capacity: s.bytes(verb), MaxQueued: s.settings.MaxQueuedBytes})
	case name == "squeeze":
		s.pool.Resize(pool.Size{Capacity: s.bytes(verb), MaxQueued: s.settings.MaxQueuedBytes, Squeezed: true})
	case verb == "carry":
		a, n := s.account(name), s.bytes(rest[0])
		s.carried[a] += n
		s.pool.Carry(a, n)
	case name == "beside":
		s.pool.Owe(s.bytes(verb))
	case verb == "limits":
		s.pool.SetLimits(s.account(name), s.limits(rest))
	case verb == "acquire":
		ctx, r := s.request(name, rest)
		if r.Account == nil {
			r.Account = s.account("")
		}
		l := s.lease(name)
		s.call(name, func() pool.Result { return s.pool.Acquire(ctx, l, r) })
	case verb == "grow":
		ctx, r := s.request(name+"+", rest)
		l := s.leases[name]
		s.call(name+"+", func() pool.Result { return l.Grow(ctx, r.Bytes) })
	case verb == "settle":
		ctx, r := s.request(name, rest[1:])
		l, part := s.leases[rest[0]], s.lease(name)
		s.call(name, func() pool.Result { return l.Settle(ctx, part, r) })
	case verb == "owe":
		s.leases[name].Owe(s.bytes(rest[0]))
	case verb == "release" && len(rest) > 0: // and leaves some bytes to an account
		a, n := s.account(rest[0]), s.bytes(rest[1])
		s.carried[a] += n
		s.leases[name].Release(pool.Share{Account: a, Bytes: n})
	case verb == "release":
		s.leases[name].Release()
	case verb == "leave":
		s.leave[name]()
	default:
		s.t.Fatalf("no such step: %v", words)
	}
}

func (s *stage) lease(name string) *pool.Lease {
	require.NotContains(s.t, s.leases, name)
	s.leases[name] = new(pool.Lease)
	return s.leases[name]
}

func (s *stage) bytes(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(s.t, err)
	return n
}

// request reads the words that follow a verb.
func (s *stage) request(name string, words []string) (context.Context, pool.Request) {
	ctx, cancel := context.WithCancel(s.t.Context())
	r := pool.Request{Bytes: s.bytes(words[0])}
	for _, word := range words[1:] {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "gate":
			r.Gate = s.gate
		case "account":
			r.Account = s.account(value)
		case "others":
			for _, other := range strings.Split(value, ",") {
				name, n, _ := strings.Cut(other, ":")
				r.Others = append(r.Others, pool.Share{Account: s.account(name), Bytes: s.bytes(n)})
			}
		case "provisional":
			r.Provisional, r.Parked = true, r.Bytes
		case "debt":
			r.Debt = true
		case "left":
			d, err := time.ParseDuration(value)
			require.NoError(s.t, err)
			ctx, cancel = context.WithTimeout(s.t.Context(), d)
		default:
			s.t.Fatalf("no such word: %s", word)
		}
	}
	s.leave[name] = cancel
	return ctx, r
}

func (s *stage) limits(words []string) (l pool.Limits) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch n, _ := strconv.ParseFloat(value, 64); key {
		case "weight":
			l.Weight = n
		case "fraction":
			l.Fraction = n
		case "slots":
			l.Slots = int64(n)
		case "queued":
			l.Queued = int64(n)
		case "stranger":
			l.Stranger = true
		default:
			s.t.Fatalf("no such limit: %s", word)
		}
	}
	return l
}

func (s *stage) account(name string) *pool.Account {
	if s.accounts[name] == nil {
		s.accounts[name] = new(pool.Account)
	}
	return s.accounts[name]
}

// call makes one request, which may wait.
func (s *stage) call(name string, f func() pool.Result) {
	require.False(s.t, s.waiting[name], "%s waits already", name)
	s.waiting[name] = true
	go func() { s.answers <- name + " " + describe(f()) }()
}

// answered returns what was answered since it was last called.
func (s *stage) answered() (answers []string) {
	synctest.Wait()
	for range len(s.answers) {
		a := <-s.answers
		name, _, _ := strings.Cut(a, " ")
		delete(s.waiting, name)
		answers = append(answers, a)
	}
	slices.Sort(answers)
	return answers
}

func (s *stage) state() string {
	st := s.pool.Stats()
	return fmt.Sprintf("held %d used %d queued %d growing %d", st.Held, st.Used, st.Queued, st.Growing)
}

// audit counts everything that the pool keeps a figure of anew.
func (s *stage) audit() {
	s.t.Helper()
	require.NoError(s.t, s.pool.Audit(slices.Collect(maps.Values(s.accounts)), slices.Collect(maps.Values(s.leases)), s.carried))
}

// end lets everybody go, those included that are granted something by it.
func (s *stage) end() {
	for _, leave := range s.leave {
		leave()
	}
	s.answered()
	require.Empty(s.t, s.waiting)
	for _, l := range s.leases {
		l.Release()
	}
	for a, n := range s.carried {
		s.pool.Carry(a, -n)
		s.carried[a] = 0
	}
	require.Equal(s.t, "held 0 used 0 queued 0 growing 0", s.state())
	s.audit()
	for name, a := range s.accounts {
		held, used := s.pool.AccountStats(a)
		require.Zero(s.t, [...]int64{held, used}, "account %q", name)
	}
	bytes, used, _ := s.pool.GateStats(s.gate)
	require.Zero(s.t, [...]int64{bytes, used}, "gate")
}

var outcomes = map[pool.Outcome]string{
	pool.Granted: "granted", pool.TooLarge: "TooLarge", pool.LineFull: "LineFull", pool.LineHeavy: "LineHeavy",
	pool.QueueFull: "QueueFull", pool.OverSlots: "OverSlots", pool.OverBytes: "OverBytes", pool.NoSlot: "NoSlot",
	pool.NoBytes: "NoBytes", pool.Ended: "Ended", pool.Released: "Released", pool.Closed: "Closed",
}

// describe writes an answer as "NoBytes 60/100 after 200ms".
func describe(r pool.Result) string {
	words := outcomes[r.Outcome]
	if r.Observed != 0 || r.Limit != 0 {
		words += fmt.Sprintf(" %d/%d", r.Observed, r.Limit)
	}
	if r.Waited != 0 {
		words += fmt.Sprintf(" after %v", r.Waited)
	}
	return words
}
