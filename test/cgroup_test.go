// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// cgroup is a memory cgroup of this test's own.
type cgroup struct {
	t      *testing.T
	dir    string
	file   string // of its limit
	source string // as the governor calls it
}

var cgroups atomic.Int64

// newCgroup makes a cgroup with a limit in bytes and removes it with the test. Where the machine does not
// let us, the test is skipped and the line says why.
func newCgroup(t *testing.T, limit int64) *cgroup {
	t.Helper()
	const root = "/sys/fs/cgroup"
	c := &cgroup{t: t}
	name := fmt.Sprintf("otel-governor-test-%d-%d", os.Getpid(), cgroups.Add(1))
	switch controllers, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); {
	case exists(filepath.Join(root, "memory", "memory.limit_in_bytes")):
		c.dir, c.file, c.source = filepath.Join(root, "memory", name), "memory.limit_in_bytes", "cgroup_v1"
	case strings.Contains(string(controllers), "memory"):
		c.dir, c.file, c.source = filepath.Join(root, name), "memory.max", "cgroup_v2"
	default:
		t.Skipf("skipped, not passed: no memory controller at %s", root)
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Skipf("skipped, not passed: no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		// The kernel lets go of a process a moment after it has ended.
		eventually(t, "the cgroup is removed", func() bool { return os.Remove(c.dir) == nil || !exists(c.dir) })
	})
	if err := os.WriteFile(filepath.Join(c.dir, c.file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		t.Skipf("skipped, not passed: no limit can be set here: %v", err)
	}
	return c
}

// limit changes the limit.
func (c *cgroup) limit(bytes int64) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, c.file), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// within returns a command that becomes args inside the cgroup.
func (c *cgroup) within(args []string) []string {
	return append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs")}, args...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
