// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// allowing is an overrides file in which acme's batches have n items at most.
func allowing(n int) string {
	return fmt.Sprintf("overrides:\n  acme:\n    max_batch_items: %d\n    breaker: {breaches: unlimited}\n", n)
}

// mounted is a file in a directory that is made like that of a mounted ConfigMap: the file is a link into a
// directory that is itself reached through a link, and an update replaces the latter.
type mounted struct {
	t        *testing.T
	dir      string
	versions int
}

func (m *mounted) path() string { return filepath.Join(m.dir, "overrides.yaml") }

func (m *mounted) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// swap is how Kubernetes updates it. An empty content is a version without the file.
func (m *mounted) swap(content string) {
	m.versions++
	version := fmt.Sprint("..version-", m.versions)
	m.must(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	if content != "" {
		m.must(os.WriteFile(filepath.Join(m.dir, version, "overrides.yaml"), []byte(content), 0o600))
	}
	next := filepath.Join(m.dir, "..data_tmp")
	m.must(os.Symlink(version, next))
	m.must(os.Rename(next, filepath.Join(m.dir, "..data")))
}

// write is how a person does it.
func (m *mounted) write(content string) { m.must(os.WriteFile(m.path(), []byte(content), 0o600)) }

// replace is how careful programs do it.
func (m *mounted) replace(content string) {
	next := m.path() + ".new"
	m.must(os.WriteFile(next, []byte(content), 0o600))
	m.must(os.Rename(next, m.path()))
}

// TestOverridesAreFollowedWithoutARestart changes the overrides file in every way in which files change,
// breaks it, and mends it.
func TestOverridesAreFollowedWithoutARestart(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		change func(*mounted, string)
		broken string
		says   string
	}{
		"written in place": {
			(*mounted).write, "overrides: {acme: {max_batch_itmes: 9}}",
			"'overrides::acme::max_batch_itmes' is not a key here",
		},
		"replaced": {
			(*mounted).replace, "overrides: {acme: {max_batch_items: 9, max_concurrent: 0}}",
			"'overrides::acme::max_concurrent' must be at least 1, got 0",
		},
		"linked anew": {(*mounted).swap, "", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, by := startSink(t), byHeader(t)
			file := &mounted{t: t, dir: t.TempDir()}
			if strings.HasPrefix(name, "linked") {
				file.must(os.Symlink(filepath.Join("..data", "overrides.yaml"), file.path()))
			}
			k.change(file, allowing(1))
			c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(by.yaml,
				"extensions::governor::tenants::overrides_file: "+file.path())})
			acme := tenant{c, "acme", by}
			want := func(items int, valid int64) {
				t.Helper()
				wantAccepted(t, acme.send(grpcProtocol, traces, unnamed(items)))
				wantNever(t, acme.send(grpcProtocol, traces, unnamed(items+1)), "batch_items")
				if got := c.scrape().sum("otelcol_governor_overrides_valid"); got != valid {
					t.Errorf("overrides valid: %d, want %d", got, valid)
				}
			}
			want(1, 1)

			h := s.holdOf("at work")
			working := acme.sending(grpcProtocol, traces, one("at work", 0))
			s.wantArrival(h)
			k.change(file, allowing(2))
			c.wantNthLine(1, "Overrides reloaded")
			want(2, 1)
			s.release(h)
			wantAccepted(t, <-working)

			k.change(file, k.broken)
			broken := func(l line) bool {
				return message("The overrides file cannot be used")(l) && strings.Contains(l.text("error"), k.says)
			}
			if _, told := c.log.nth(1, broken); !told {
				t.Fatalf("the log does not say %q", k.says)
			}
			want(2, 0)
			since := time.Now()
			eventually(t, "it has been looked at again", func() bool { return time.Since(since) > 2500*time.Millisecond })
			if n := len(c.log.all(broken)); n != 1 {
				t.Errorf("the log says %d times what is broken, want once", n)
			}
			want(2, 0)

			k.change(file, allowing(3))
			c.wantNthLine(2, "Overrides reloaded")
			want(3, 1)
			if n := len(c.log.all(message("Everything is ready."))); n != 1 {
				t.Errorf("the collector started %d times", n)
			}
			c.wantIdle()
		})
	}
}

// unnamed is a batch of nothing but its items.
func unnamed(items int) batch { return batch{ids: make([]string, items)} }
