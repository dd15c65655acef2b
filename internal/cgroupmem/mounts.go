// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// parseCgroup reads /proc/self/cgroup, lines of "id:controllers:name" (see
// cgroups(7)), and returns the hierarchy that accounts memory and the cgroup's
// name in it; "" and "" if there is none.
//
// A line of another shape is an error: it could be the one that matters.
func parseCgroup(text string) (Source, string, error) {
	var source Source
	var name string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.SplitN(line, ":", 3) // a name may contain colons
		if len(fields) < 3 {
			return "", "", fmt.Errorf("want id:controllers:name, found %s", quote(line))
		}
		v1 := slices.Contains(strings.Split(fields[1], ","), "memory")
		v2 := fields[0] == "0" && fields[1] == ""
		if !v1 && !v2 {
			continue
		}
		if !strings.HasPrefix(fields[2], "/") {
			return "", "", fmt.Errorf("want an absolute cgroup name, found %s", quote(line))
		}
		if v1 {
			return SourceCgroupV1, fields[2], nil
		}
		source, name = SourceCgroupV2, fields[2]
	}
	return source, name, nil
}

// mount is a place where a part of a hierarchy that may account memory is
// visible: the cgroup named root, and what is below it, at the directory point.
type mount struct {
	source      Source
	root, point string
}

// parseMountinfo reads /proc/self/mountinfo (see proc_pid_mountinfo(5)):
//
//	id parent major:minor root point options [tags...] - type device super-options
//
// It returns the mounts of cgroup2 and of the v1 memory controller in the file's
// order. The error is about the first line that could not be read; the other
// lines count all the same.
func parseMountinfo(text string) (mounts []mount, malformed error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m, err := parseMount(line)
		if err != nil {
			if malformed == nil {
				malformed = err
			}
			continue
		}
		if m.source != "" {
			mounts = append(mounts, m)
		}
	}
	return mounts, malformed
}

// parseMount reads one line of mountinfo; the source is "" for a filesystem
// that does not account memory.
func parseMount(line string) (mount, error) {
	// Split, not Fields: a device may be the empty string. Spaces within a field
	// are escaped, so the first lone dash is the separator.
	left, right, found := strings.Cut(line, " - ")
	if !found {
		return mount{}, fmt.Errorf("want a mount, found %s", quote(line))
	}
	var source Source
	switch fields := strings.Split(right, " "); {
	case fields[0] == "cgroup2":
		source = SourceCgroupV2
	case fields[0] == "cgroup" && slices.Contains(strings.Split(fields[len(fields)-1], ","), "memory"):
		source = SourceCgroupV1
	default:
		return mount{}, nil
	}
	fields := strings.Split(left, " ")
	if len(fields) < 6 || !strings.HasPrefix(fields[3], "/") || !strings.HasPrefix(fields[4], "/") {
		return mount{}, fmt.Errorf("want a cgroup mount, found %s", quote(line))
	}
	return mount{source: source, root: unescape(fields[3]), point: unescape(fields[4])}, nil
}

// unescape decodes \ooo, which mountinfo has in place of blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// locate returns where the named cgroup and its ancestors are visible, nearest
// first.
//
// Each is looked up by itself, so that a container that sees its own cgroup in
// one mount and the host's tree in another still learns the limits of its
// parents. If none is visible, as when a container was given a tree under
// another name, the answer is the first mount's own directory: most likely its
// cgroup, and a limit to keep in any case.
//
// Names are compared as they are and never cleaned. Outside of the cgroup
// namespace's root they start with "/..", which cleaning would turn into a
// different cgroup.
func locate(mounts []mount, source Source, name string) []string {
	var dirs []string
	for name = strings.TrimSuffix(name, "/"); ; name = name[:strings.LastIndexByte(name, '/')] {
		if dir, found := visible(mounts, source, name); found {
			dirs = append(dirs, dir)
		}
		if name == "" || strings.HasSuffix(name, "/..") {
			break // the root, or a cgroup whose parent's name we are not told
		}
	}
	if dirs == nil {
		if i := slices.IndexFunc(mounts, func(m mount) bool { return m.source == source }); i >= 0 {
			dirs = []string{path.Clean(mounts[i].point)}
		}
	}
	return dirs
}

// visible returns the directory of one cgroup, by the mount with the longest
// root that has it: the one made for this process. The first of equals wins,
// because later ones are copies, such as the bind mounts of a chroot.
func visible(mounts []mount, source Source, name string) (dir string, found bool) {
	longest := -1
	for _, m := range mounts {
		root := strings.TrimSuffix(m.root, "/")
		below, ok := strings.CutPrefix(name, root)
		if !ok || m.source != source || len(root) <= longest {
			continue
		}
		if below != "" && below[0] != '/' {
			continue // a name that only starts alike
		}
		if slices.Contains(strings.Split(below, "/"), "..") {
			continue // not below this root but beside it
		}
		dir, found, longest = path.Join(m.point, below), true, len(root)
	}
	return dir, found
}
