// SPDX-License-Identifier: Apache-2.0

// Package cgroupmem tells what the Linux kernel says about this process's memory:
// how much it may use (Reader.Limit), and how much of that is used (Sampler). It
// reads procfs and cgroupfs under an injectable root. It is not a sizing policy
// (no fractions, no defaults, no thresholds), watches nothing, and knows nothing
// of telemetry. On other systems the files are not there, and nothing is known.
//
// The order in which a limit is found:
//
//  1. /proc/self/cgroup says which hierarchy accounts the process's memory, and
//     the name of its cgroup there.
//  2. /proc/self/mountinfo says where that cgroup and its ancestors are visible.
//  3. The smallest limit of any of them is the cgroup limit.
//  4. The smaller of that and MemTotal is the answer.
//
// What may surprise:
//
//   - A v1 memory controller wins over a "0::" line. A hybrid machine has both,
//     and its v2 hierarchy has no memory controller.
//   - Absent is "no limit"; present but not understood, or not readable, is an
//     error. Sizing for the whole machine because of a typo is the failure that
//     this package exists to prevent. Usage is kinder: it is read while the
//     process runs, so a figure that cannot be read is Unknown and the others
//     remain.
//   - Of two cgroups with the same limit, the ancestor governs: it is charged
//     for its other children too, and is full first.
//   - A v2 limit above the root of a cgroup namespace cannot be seen from inside.
//     A v1 one can, because the kernel states it in memory.stat. And where only
//     the host's tree is mounted in such a namespace, the process's own cgroup
//     has no name in it: no limit is found, and Limited is false.
package cgroupmem

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Source says who set a limit. The values are stable: they appear in logs.
type Source string

const (
	SourceCgroupV2 Source = "cgroup_v2"
	SourceCgroupV1 Source = "cgroup_v1"
	SourceMeminfo  Source = "meminfo" // the machine's size
)

// ErrUnknown means that nothing tells how much memory there is: no cgroup
// limits the process, and there is no MemTotal.
var ErrUnknown = errors.New("no cgroup memory limit and no MemTotal")

// Limit is what the kernel lets the process use at one moment.
type Limit struct {
	// Bytes is the smaller of the cgroup limit and Total. It can be 0: that is
	// a limit one can set.
	Bytes int64
	// Source is who set Bytes. A cgroup limit equal to Total counts as the
	// cgroup's.
	Source Source
	// Dir is the cgroup directory that governs, as the process sees it (an
	// absolute slash-separated path, without the Reader's root); "" if Source is
	// SourceMeminfo. If the limit is set by a v1 ancestor that is not visible,
	// Dir is the visible directory nearest to it.
	Dir string
	// Total is the machine's MemTotal in bytes, 0 if unknown.
	Total int64
	// Limited tells whether any cgroup sets a limit, even one above Total.
	// Without one, Bytes is the whole machine and nobody chose it.
	Limited bool
}

// Reader reads limits below a root directory, and makes Samplers. It holds no
// state, so it is safe for concurrent use.
type Reader struct {
	root string
	read func(file string) ([]byte, error) // os.ReadFile, but for tests
	open func(file string) (handle, error) // openFile, but for tests
}

// New returns a Reader of the procfs and cgroupfs below root: "/" on a real
// machine. It touches no file.
func New(root string) *Reader {
	return &Reader{root: root, read: os.ReadFile, open: openFile}
}

// Limit reads everything anew, because limits change in place and processes are
// moved between cgroups. Errors are ErrUnknown, or name the file that could not
// be read or understood and show the start of what it holds.
func (r *Reader) Limit() (Limit, error) {
	total, err := r.number("/proc/meminfo", parseMeminfo, 0)
	if err != nil {
		return Limit{}, err
	}
	l, err := r.cgroup()
	if err != nil {
		return Limit{}, err
	}
	l.Total, l.Limited = total, l.Bytes != unlimited
	switch {
	case !l.Limited && total == 0:
		return Limit{}, ErrUnknown
	case total > 0 && total < l.Bytes:
		l.Bytes, l.Source, l.Dir = total, SourceMeminfo, ""
	}
	return l, nil
}

// unlimited is how parsers and limits say "none". It is the largest value, so
// that a minimum needs no special case.
const unlimited int64 = math.MaxInt64

// limitFiles are the files of a cgroup directory that state a limit.
//
// In v2, memory.high counts as much as memory.max: above it the kernel does not
// kill but throttles the process to a standstill. In v1, memory.stat states the
// least limit of the cgroup and its ancestors, the only word there is about
// ancestors outside of the mount. The soft limit is left out: it binds only
// while the machine itself is short.
var limitFiles = map[Source][]struct {
	name  string
	parse func(string) (int64, error)
}{
	SourceCgroupV2: {{"memory.max", parseLimit}, {"memory.high", parseLimit}},
	SourceCgroupV1: {{"memory.limit_in_bytes", parseLimit}, {"memory.stat", parseMemoryStat}},
}

// cgroup finds the smallest limit of the process's cgroup and its visible
// ancestors. It fills Bytes, Source and Dir; Bytes is unlimited if there is none.
func (r *Reader) cgroup() (Limit, error) {
	best := Limit{Bytes: unlimited}
	source, dirs, err := r.ancestry()
	if err != nil {
		return best, err
	}
	for i, dir := range dirs {
		if i > 0 {
			// Without use_hierarchy (v1 before Linux 5.11) an ancestor is not
			// charged for its children, so its limit is none of theirs.
			hierarchy, err := r.number(path.Join(dir, "memory.use_hierarchy"), parseFlag, 1)
			if err != nil {
				return best, err
			}
			if hierarchy == 0 {
				break
			}
		}
		for _, f := range limitFiles[source] {
			n, err := r.number(path.Join(dir, f.name), f.parse, unlimited)
			if err != nil {
				return best, err
			}
			// Not "<": the ancestor governs when equal. This also carries Dir up
			// to where a limit comes from that v1 states in every memory.stat
			// below it.
			if n <= best.Bytes {
				best = Limit{Bytes: n, Source: source, Dir: dir}
			}
		}
	}
	return best, nil
}

// ancestry returns the visible directories of the process's memory cgroup and
// its ancestors, nearest first; none if no hierarchy or no mount is there.
func (r *Reader) ancestry() (Source, []string, error) {
	const cgroupFile, mountsFile = "/proc/self/cgroup", "/proc/self/mountinfo"

	text, err := r.text(cgroupFile)
	if err != nil {
		return "", nil, err
	}
	source, name, err := parseCgroup(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", r.file(cgroupFile), err)
	}
	if source == "" {
		return "", nil, nil
	}
	if text, err = r.text(mountsFile); err != nil {
		return "", nil, err
	}
	mounts, malformed := parseMountinfo(text)
	dirs := locate(mounts, source, name)
	// A foreign filesystem may spoil its own line, which is not our concern
	// unless the mount that we look for could have been on it.
	if len(dirs) == 0 && malformed != nil {
		return "", nil, fmt.Errorf("%s: %w", r.file(mountsFile), malformed)
	}
	return source, dirs, nil
}

// number parses a whole file; an absent one counts as the given value.
func (r *Reader) number(name string, parse func(string) (int64, error), absent int64) (int64, error) {
	text, err := r.read(r.file(name))
	if isAbsent(err) {
		return absent, nil
	}
	if err != nil {
		return 0, err // names the file: an *fs.PathError
	}
	n, err := parse(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.file(name), err)
	}
	return n, nil
}

// text reads a whole file; an absent one reads as empty.
func (r *Reader) text(name string) (string, error) {
	text, err := r.read(r.file(name))
	if isAbsent(err) {
		return "", nil
	}
	return string(text), err
}

func (r *Reader) file(name string) string {
	return filepath.Join(r.root, filepath.FromSlash(name))
}

// isAbsent leaves ENODEV out on purpose. It is what reading from a cgroup gives
// that is being removed, which says nothing about the one that comes next.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
