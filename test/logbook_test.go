// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// line is one line of a collector's log: its JSON object, or just its text under "text" where it is none.
type line map[string]any

// text returns a field that holds a string, or "".
func (l line) text(field string) string {
	s, _ := l[field].(string)
	return s
}

// bytes returns a field that holds a whole number, or -1.
func (l line) bytes(field string) int64 {
	n, ok := l[field].(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return i
}

// time returns when the line was written.
func (l line) time(t *testing.T) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000Z0700", l.text("ts"))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// message matches lines by what they say.
func message(prefix string) func(line) bool {
	return func(l line) bool { return strings.HasPrefix(l.text("msg"), prefix) }
}

// resource is the same in every line.
var resource = regexp.MustCompile(`"resource":{[^}]*},?`)

// logbook keeps what a process writes, and lets tests wait for a line.
type logbook struct {
	mu      sync.Mutex
	raw     []string
	lines   []line
	changed chan struct{} // closed when a line comes, and for good at the end
	ended   bool
}

func newLogbook() *logbook { return &logbook{changed: make(chan struct{})} }

// read takes in r until it ends.
func (b *logbook) read(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		raw, err := in.ReadString('\n')
		if raw = strings.TrimSuffix(raw, "\n"); raw != "" {
			b.add(raw)
		}
		if err != nil {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	close(b.changed)
}

func (b *logbook) add(raw string) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var l line
	if d.Decode(&l) != nil {
		l = line{"text": raw}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raw, b.lines = append(b.raw, raw), append(b.lines, l)
	close(b.changed)
	b.changed = make(chan struct{})
}

// all returns the lines so far that match.
func (b *logbook) all(match func(line) bool) []line {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []line
	for _, l := range b.lines {
		if match(l) {
			found = append(found, l)
		}
	}
	return found
}

// nth returns the nth line that matches, from 1. It waits for it, and returns false if the process ends
// before or patience does.
func (b *logbook) nth(n int, match func(line) bool) (line, bool) {
	timeout := time.After(patience)
	for {
		b.mu.Lock()
		changed, ended := b.changed, b.ended
		b.mu.Unlock()
		if found := b.all(match); len(found) >= n {
			return found[n-1], true
		}
		if ended {
			return nil, false
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, false
		}
	}
}

// tail returns the last lines, without the ends of very long ones.
func (b *logbook) tail() string {
	const most, width = 20, 500
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	for _, raw := range b.raw[max(0, len(b.raw)-most):] {
		raw = resource.ReplaceAllString(raw, "")
		s.WriteString(raw[:min(len(raw), width)])
		s.WriteByte('\n')
	}
	return s.String()
}

// text returns all that the process has written.
func (b *logbook) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.raw, "\n")
}

// wantLine waits for the first line whose message begins with prefix.
func (c *collector) wantLine(prefix string) line { return c.wantNthLine(1, prefix) }

// wantNthLine waits for the nth such line.
func (c *collector) wantNthLine(n int, prefix string) line {
	c.t.Helper()
	l, ok := c.log.nth(n, message(prefix))
	if !ok {
		c.t.Fatalf("the log has no line %d of %q", n, prefix)
	}
	return l
}

// warnings returns what the governor warned of so far.
func (c *collector) warnings() []line {
	return c.log.all(func(l line) bool {
		return l.text("level") == "warn" && l.text("otelcol.component.id") == "governor"
	})
}

// eventually polls until what holds. It is for what can only be seen from outside by looking: metrics of a
// process and the like.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
