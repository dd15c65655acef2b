// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// cgroup is a memory cgroup, of version 1 or 2. The zero value is none.
type cgroup struct {
	dir string
	v1  bool
}

var cgroups atomic.Int64

// newCgroup makes one with a limit in bytes.
func newCgroup(limit int64) (cgroup, error) {
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("otel-governor-bomb-%d-%d", os.Getpid(), cgroups.Add(1))
	g, file := cgroup{dir: filepath.Join(root, name)}, "memory.max"
	controllers, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if _, err := os.Stat(filepath.Join(root, "memory", "memory.limit_in_bytes")); err == nil {
		g, file = cgroup{dir: filepath.Join(root, "memory", name), v1: true}, "memory.limit_in_bytes"
	} else if !strings.Contains(string(controllers), "memory") {
		return cgroup{}, fmt.Errorf("no memory controller at %s", root)
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return cgroup{}, err
	}
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		return cgroup{}, errors.Join(err, os.Remove(g.dir))
	}
	return g, nil
}

// NoCgroup returns why no memory cgroup can be made here, or nil if one can.
func NoCgroup() error {
	g, err := newCgroup(1 << 30)
	if err != nil {
		return err
	}
	return g.remove()
}

// within returns a command that becomes args inside the cgroup.
func (g cgroup) within(args []string) []string {
	if g.dir == "" {
		return args
	}
	return append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, args...)
}

// kills returns how many processes the kernel has killed in the cgroup for want of memory, and peak the most bytes
// that they used.
func (g cgroup) kills() int64 {
	if g.v1 {
		return g.figure("memory.oom_control", "oom_kill")
	}
	return g.figure("memory.events", "oom_kill")
}

func (g cgroup) peak() int64 {
	if g.v1 {
		return g.figure("memory.max_usage_in_bytes", "")
	}
	return g.figure("memory.peak", "")
}

// figure returns the number behind a name in one of the cgroup's files, or the only one there is, or -1.
func (g cgroup) figure(file, name string) int64 {
	text, _ := os.ReadFile(filepath.Join(g.dir, file))
	for said := range strings.Lines(string(text)) {
		number, found := strings.TrimSpace(said), name == ""
		if !found {
			number, found = strings.CutPrefix(number, name+" ")
		}
		if n, err := strconv.ParseInt(number, 10, 64); found && err == nil {
			return n
		}
	}
	return -1
}

// remove removes the cgroup, whose processes have ended. The kernel lets go of them a moment later.
func (g cgroup) remove() error {
	if g.dir == "" {
		return nil
	}
	err := os.Remove(g.dir)
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); err = os.Remove(g.dir) {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
