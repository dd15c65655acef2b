// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	c.write(c.file, bytes)
}

func (c *cgroup) write(file string, bytes int64) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, file), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// kills returns how many processes the kernel has killed in the cgroup for want of memory.
func (c *cgroup) kills() int64 {
	c.t.Helper()
	if c.source == "cgroup_v1" {
		return c.figure("memory.oom_control", "oom_kill")
	}
	return c.figure("memory.events", "oom_kill")
}

// peak returns the most bytes that were used, page cache included.
func (c *cgroup) peak() int64 {
	c.t.Helper()
	if c.source == "cgroup_v1" {
		return c.figure("memory.max_usage_in_bytes", "")
	}
	return c.figure("memory.peak", "")
}

// pageCache returns the bytes of files that the kernel keeps in memory because somebody may want them again.
func (c *cgroup) pageCache() int64 {
	c.t.Helper()
	if c.source == "cgroup_v1" {
		return c.figure("memory.stat", "cache") - c.figure("memory.stat", "shmem")
	}
	return c.figure("memory.stat", "file") - c.figure("memory.stat", "shmem")
}

// figure returns the number behind a name in one of the cgroup's files, or the only one there is.
func (c *cgroup) figure(file, name string) int64 {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, file))
	if err != nil {
		c.t.Fatal(err)
	}
	for said := range strings.Lines(string(text)) {
		fields := append(strings.Fields(said), "")
		if name == "" {
			fields = append([]string{""}, fields...)
		}
		if fields[0] != name {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			c.t.Fatalf("%s: %v", file, err)
		}
		return n
	}
	c.t.Fatalf("%s has no %s:\n%s", file, name, text)
	return 0
}

// ballast fills so many bytes of the cgroup's memory that the kernel cannot take back, for which it needs no
// process, until the function it returns is called.
func (c *cgroup) ballast(bytes int64) (drop func()) {
	c.t.Helper()
	const shm = "/dev/shm" // by POSIX the place of shared memory
	if !exists(shm) {
		c.t.Skipf("skipped, not passed: no %s here", shm)
	}
	path := filepath.Join(shm, filepath.Base(c.dir))
	fill := c.within([]string{"/bin/sh", "-c", `head -c "$1" /dev/zero >"$0"`, path, strconv.FormatInt(bytes, 10)})
	drop = sync.OnceFunc(func() { _ = os.Remove(path) })
	c.t.Cleanup(drop)
	if out, err := exec.Command(fill[0], fill[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("ballast of %d bytes: %v\n%s", bytes, err, out)
	}
	return drop
}

// within returns a command that becomes args inside the cgroup.
func (c *cgroup) within(args []string) []string {
	return append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(c.dir, "cgroup.procs")}, args...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
