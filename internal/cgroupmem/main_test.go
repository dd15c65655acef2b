// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree is a filesystem in a table: absolute path to content.
type tree map[string]string

// with returns a copy with some files replaced.
func (t tree) with(files tree) tree {
	all := tree{}
	for _, part := range []tree{t, files} {
		for name, text := range part {
			all[name] = text
		}
	}
	return all
}

func (t tree) reader() *Reader { return t.disk().reader() }

// failing is the tree with one file that cannot be read.
func (t tree) failing(name string, err error) *Reader {
	d := t.disk()
	d.files[name].readErr = err
	return d.reader()
}

const (
	mib = int64(1) << 20
	gib = int64(1) << 30

	memTotal    = 16 * gib
	meminfo     = "MemTotal:       16777216 kB\nMemFree:         1024000 kB\n"
	v1Unlimited = "9223372036854771712\n" // as Linux prints it with pages of 4 KiB
)

// Two levels below the mount in each version.
var (
	v2 = tree{
		"/proc/meminfo":           meminfo,
		"/proc/self/cgroup":       "0::/pod/ctr\n",
		"/proc/self/mountinfo":    "33 23 0:28 / /cg rw shared:8 - cgroup2 cgroup2 rw\n",
		"/cg/pod/memory.max":      "max\n",
		"/cg/pod/memory.high":     "max\n",
		"/cg/pod/ctr/memory.max":  "max\n",
		"/cg/pod/ctr/memory.high": "max\n",
	}
	v1 = tree{
		"/proc/meminfo":                     meminfo,
		"/proc/self/cgroup":                 "5:cpu:/\n4:memory:/pod/ctr\n",
		"/proc/self/mountinfo":              "36 30 0:31 / /cg rw shared:9 - cgroup cgroup rw,memory\n",
		"/cg/memory.limit_in_bytes":         v1Unlimited,
		"/cg/memory.stat":                   "cache 1\nhierarchical_memory_limit " + v1Unlimited,
		"/cg/memory.use_hierarchy":          "1\n",
		"/cg/pod/memory.limit_in_bytes":     v1Unlimited,
		"/cg/pod/memory.stat":               "cache 1\nhierarchical_memory_limit " + v1Unlimited,
		"/cg/pod/memory.use_hierarchy":      "1\n",
		"/cg/pod/ctr/memory.limit_in_bytes": v1Unlimited,
		"/cg/pod/ctr/memory.stat":           "cache 1\nhierarchical_memory_limit " + v1Unlimited,
		"/cg/pod/ctr/memory.use_hierarchy":  "1\n",
	}
)
