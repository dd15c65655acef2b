// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitUnknown(t *testing.T) {
	for name, tree := range map[string]tree{
		"nothing there":            {},
		"no limit and no MemTotal": v2.with(tree{"/proc/meminfo": "MemFree: 5 kB\n"}),
		"MemTotal of 0":            v1.with(tree{"/proc/meminfo": "MemTotal: 0 kB\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tree.reader().Limit()
			require.ErrorIs(t, err, ErrUnknown)
			require.Zero(t, got)
		})
	}
}

// Whatever is in a file that matters, the answer is never "unlimited" by mistake.
func TestGarbageIsAnErrorThatNamesTheFile(t *testing.T) {
	const bytes, stat = `want a number of bytes or "max"`, "hierarchical_memory_limit"
	long := strings.Repeat("9", 5000)
	limit := tree{ // content to message
		"":                       bytes + `, found ""`,
		"\n":                     bytes + `, found "\n"`,
		"-1\n":                   bytes + `, found "-1\n"`,
		"1e9\n":                  bytes + `, found "1e9\n"`,
		"1GiB\n":                 bytes + `, found "1GiB\n"`,
		"MAX\n":                  bytes + `, found "MAX\n"`,
		"0x10\n":                 bytes + `, found "0x10\n"`,
		"1_000\n":                bytes + `, found "1_000\n"`,
		"+5\n":                   bytes + `, found "+5\n"`,
		"1 2\n":                  bytes + `, found "1 2\n"`,
		"\x00\xff":               bytes + `, found "\x00\xff"`,
		"18446744073709551616\n": bytes + `, found "18446744073709551616\n"`,
		long:                     bytes + `, found "` + long[:80] + `"...`,
	}
	mounts := tree{
		"garbage\n":                         `want a mount, found "garbage"`,
		"1 2 0:28 - cgroup2 x rw,memory\n":  `want a cgroup mount, found "1 2 0:28 - cgroup2 x rw,memory"`,
		"1 2 0:28 / /cg - cgroup2 x rw\n":   `want a cgroup mount, found "1 2 0:28 / /cg - cgroup2 x rw"`,
		"1 2 0:28 / cg rw - cgroup2 x rw\n": `want a cgroup mount, found "1 2 0:28 / cg rw - cgroup2 x rw"`,
		"1 2 0:2 p /c rw - cgroup x memory": `want a cgroup mount, found "1 2 0:2 p /c rw - cgroup x memory"`,
	}
	for _, tt := range []struct {
		tree    tree
		file    string
		garbage tree
	}{
		{v2, "/cg/pod/ctr/memory.max", limit},
		{v2, "/cg/pod/ctr/memory.high", limit},
		{v2, "/cg/pod/memory.max", limit},
		{v2, "/cg/pod/memory.high", limit},
		{v1, "/cg/pod/ctr/memory.limit_in_bytes", limit},
		{v1, "/cg/memory.limit_in_bytes", limit},
		{v1, "/cg/pod/ctr/memory.stat", tree{
			"":              "want a line " + stat + `, found ""`,
			"cache 1\n":     "want a line " + stat + `, found "cache 1\n"`,
			stat + "\n":     "want a line " + stat + `, found "` + stat + `\n"`,
			stat + " x\n":   stat + ": " + bytes + `, found "x\n"`,
			stat + " -1\nx": stat + ": " + bytes + `, found "-1\n"`,
		}},
		{v1, "/cg/pod/memory.use_hierarchy", tree{
			"":      `want 0 or 1, found ""`,
			"yes\n": `want 0 or 1, found "yes\n"`,
			"2\n":   `want 0 or 1, found "2\n"`,
		}},
		{v1, "/proc/self/mountinfo", mounts},
		{v2, "/proc/self/mountinfo", mounts},
		{v1, "/proc/self/cgroup", tree{
			"garbage\n":      `want id:controllers:name, found "garbage"`,
			"0::/\n\n":       `want id:controllers:name, found ""`,
			"4:memory\n":     `want id:controllers:name, found "4:memory"`,
			"4:memory:":      `want an absolute cgroup name, found "4:memory:"`,
			"4:memory:pod\n": `want an absolute cgroup name, found "4:memory:pod"`,
			"0::\n":          `want an absolute cgroup name, found "0::"`,
		}},
		{v2, "/proc/meminfo", tree{
			"MemTotal:\n":                        `want MemTotal in kB, found "MemTotal:\n"`,
			"MemTotal: x kB\n":                   `want MemTotal in kB, found "MemTotal: x kB\n"`,
			"MemTotal: -1 kB\n":                  `want MemTotal in kB, found "MemTotal: -1 kB\n"`,
			"MemTotal: 16 MB\n":                  `want MemTotal in kB, found "MemTotal: 16 MB\n"`,
			"MemTotal: 16\n":                     `want MemTotal in kB, found "MemTotal: 16\n"`,
			"MemTotal: 9007199254740992 kB\nx\n": `want MemTotal in kB, found "MemTotal: 9007199254740992 kB\n"`,
		}},
	} {
		for text, message := range tt.garbage {
			t.Run(tt.file+" "+quote(text), func(t *testing.T) {
				got, err := tt.tree.with(tree{tt.file: text}).reader().Limit()
				require.EqualError(t, err, filepath.FromSlash(tt.file)+": "+message)
				require.Zero(t, got)
			})
		}
	}
}

func TestUnreadableIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, cause := range []error{syscall.EACCES, syscall.EIO, syscall.ENODEV} {
		for _, tree := range []tree{v1, v2} {
			for file := range tree {
				if file == "/cg/pod/ctr/memory.use_hierarchy" {
					continue // about its children, of which the process is in none
				}
				t.Run(file, func(t *testing.T) {
					got, err := tree.failing(file, cause).Limit()
					require.ErrorIs(t, err, cause)
					require.ErrorContains(t, err, filepath.FromSlash(file)+": ")
					require.Zero(t, got)
				})
			}
		}
	}
}
