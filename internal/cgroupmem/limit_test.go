// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Trees as they are found on machines, read from disk.
func TestLimitOfRealWorldTrees(t *testing.T) {
	const kib = 1024
	for _, tt := range []struct {
		tree string
		want Limit
	}{
		{"v2_host", Limit{1610612736, SourceCgroupV2, "/sys/fs/cgroup/system.slice/otelcol.service", 16384000 * kib, true}},
		{"v2_pod", Limit{1610612736, SourceCgroupV2, "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7d1c.slice", 32768000 * kib, true}},
		{"v2_pod_hostfs", Limit{gib, SourceCgroupV2, "/hostfs/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7d1c.slice", 32768000 * kib, true}},
		{"v2_namespace", Limit{483183820, SourceCgroupV2, "/sys/fs/cgroup", 16384000 * kib, true}},
		{"v1_host", Limit{gib, SourceCgroupV1, "/sys/fs/cgroup/memory/system.slice", 8192000 * kib, true}},
		{"v1_docker", Limit{gib, SourceCgroupV1, "/sys/fs/cgroup/memory", 8192000 * kib, true}},
		{"hybrid", Limit{gib, SourceCgroupV1, "/sys/fs/cgroup/memory/workers/w1", 24683620 * kib, true}},
	} {
		t.Run(tt.tree, func(t *testing.T) {
			got, err := New(filepath.Join("testdata", tt.tree)).Limit()
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestLimit(t *testing.T) {
	machine := Limit{Bytes: memTotal, Source: SourceMeminfo, Total: memTotal}
	machineBelowLimit := Limit{Bytes: memTotal, Source: SourceMeminfo, Total: memTotal, Limited: true}
	byV2 := func(n int64, dir string) Limit { return Limit{n, SourceCgroupV2, dir, memTotal, true} }
	byV1 := func(n int64, dir string) Limit { return Limit{n, SourceCgroupV1, dir, memTotal, true} }

	for _, tt := range []struct {
		name  string
		tree  tree
		files tree // replaced in the tree
		want  Limit
	}{
		{"v2 leaf", v2, tree{"/cg/pod/ctr/memory.max": "1610612736\n"}, byV2(1610612736, "/cg/pod/ctr")},
		{"v2 no final newline", v2, tree{"/cg/pod/ctr/memory.max": "1610612736"}, byV2(1610612736, "/cg/pod/ctr")},
		{"v2 tighter ancestor governs", v2, tree{"/cg/pod/ctr/memory.max": "2147483648\n", "/cg/pod/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod")},
		{"v2 limit on an ancestor only", v2, tree{"/cg/pod/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod")},
		{"v2 wider ancestor does not", v2, tree{"/cg/pod/ctr/memory.max": "1073741824\n", "/cg/pod/memory.max": "2147483648\n"}, byV2(gib, "/cg/pod/ctr")},
		{"v2 equal limits: the ancestor", v2, tree{"/cg/pod/ctr/memory.max": "1073741824\n", "/cg/pod/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod")},
		{"v2 high below max", v2, tree{"/cg/pod/ctr/memory.max": "1073741824\n", "/cg/pod/ctr/memory.high": "805306368\n"}, byV2(768*mib, "/cg/pod/ctr")},
		{"v2 high above max", v2, tree{"/cg/pod/ctr/memory.max": "805306368\n", "/cg/pod/ctr/memory.high": "1073741824\n"}, byV2(768*mib, "/cg/pod/ctr")},
		{"v2 high of an ancestor", v2, tree{"/cg/pod/ctr/memory.max": "1073741824\n", "/cg/pod/memory.high": "805306368\n"}, byV2(768*mib, "/cg/pod")},
		{"v2 zero", v2, tree{"/cg/pod/ctr/memory.max": "0\n"}, byV2(0, "/cg/pod/ctr")},
		{"v2 odd number", v2, tree{"/cg/pod/ctr/memory.max": "1000000007\n"}, byV2(1000000007, "/cg/pod/ctr")},
		{"v2 max everywhere", v2, nil, machine},
		{"v2 limit above the machine", v2, tree{"/cg/pod/ctr/memory.max": "17179869185\n"}, machineBelowLimit},
		{"v2 limit equal to the machine", v2, tree{"/cg/pod/ctr/memory.max": "17179869184\n"}, byV2(memTotal, "/cg/pod/ctr")},
		{"v2 limit without MemTotal", v2, tree{"/cg/pod/ctr/memory.max": "1073741824\n", "/proc/meminfo": "MemFree: 5 kB\n"}, Limit{gib, SourceCgroupV2, "/cg/pod/ctr", 0, true}},
		{"v2 directory gone", v2, tree{"/proc/self/cgroup": "0::/pod/gone\n", "/cg/pod/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod")},

		{"v1 leaf", v1, tree{"/cg/pod/ctr/memory.limit_in_bytes": "1073741824\n"}, byV1(gib, "/cg/pod/ctr")},
		{"v1 no limit", v1, nil, machine},
		{"v1 no limit with pages of 64 KiB", v1, tree{"/cg/pod/ctr/memory.limit_in_bytes": "9223372036854710272\n"}, machine},
		{"v1 no limit before 3.19", v1, tree{"/cg/pod/ctr/memory.limit_in_bytes": "18446744073709551615\n"}, machine},
		{"v1 limit above the machine", v1, tree{"/cg/pod/ctr/memory.limit_in_bytes": "17179869185\n"}, machineBelowLimit},
		{"v1 visible ancestor", v1, tree{
			"/cg/pod/ctr/memory.stat":       "hierarchical_memory_limit 1073741824\n",
			"/cg/pod/memory.stat":           "hierarchical_memory_limit 1073741824\n",
			"/cg/pod/memory.limit_in_bytes": "1073741824\n",
		}, byV1(gib, "/cg/pod")},
		{"v1 invisible ancestor", v1, tree{
			"/proc/self/mountinfo":              "36 30 0:31 /pod /cg/pod rw - cgroup cgroup rw,memory\n",
			"/cg/pod/ctr/memory.limit_in_bytes": "2147483648\n",
			"/cg/pod/ctr/memory.stat":           "hierarchical_memory_limit 1073741824\n",
			"/cg/pod/memory.stat":               "hierarchical_memory_limit 1073741824\n",
		}, byV1(gib, "/cg/pod")},
		{"v1 ancestor that is not charged", v1, tree{
			"/cg/pod/ctr/memory.use_hierarchy":  "0\n",
			"/cg/pod/memory.use_hierarchy":      "0\n",
			"/cg/pod/memory.limit_in_bytes":     "1073741824\n",
			"/cg/pod/memory.stat":               "hierarchical_memory_limit 1073741824\n",
			"/cg/pod/ctr/memory.limit_in_bytes": "2147483648\n",
		}, byV1(2*gib, "/cg/pod/ctr")},
		{"v1 name not below the mount", v1, tree{"/proc/self/cgroup": "4:memory:/elsewhere\n", "/proc/self/mountinfo": "36 30 0:31 /pod/ctr /cg rw - cgroup cgroup rw,memory\n", "/cg/memory.limit_in_bytes": "1073741824\n"}, byV1(gib, "/cg")},
		{"v1 name unknown below the mount", v1, tree{"/proc/self/cgroup": "4:memory:/elsewhere\n", "/cg/memory.limit_in_bytes": "1073741824\n"}, byV1(gib, "/cg")},

		{"hybrid: v1 governs, though v2 has a file", v1, tree{
			"/proc/self/cgroup":                 "4:memory:/pod/ctr\n0::/\n",
			"/proc/self/mountinfo":              "40 30 0:37 / /v2 rw - cgroup2 cgroup2 rw\n" + v1["/proc/self/mountinfo"],
			"/v2/memory.max":                    "5\n",
			"/cg/pod/ctr/memory.limit_in_bytes": "1073741824\n",
		}, byV1(gib, "/cg/pod/ctr")},
		{"hybrid: memory in v2", v2, tree{"/proc/self/cgroup": "3:cpu:/\n1:name=memory:/x\n0::/pod/ctr\n", "/cg/pod/ctr/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod/ctr")},

		{"no cgroups", tree{"/proc/meminfo": meminfo}, nil, machine},
		{"cgroups but no mounts", tree{"/proc/meminfo": meminfo, "/proc/self/cgroup": "0::/\n"}, nil, machine},
		{"no memory controller", v2, tree{"/proc/self/cgroup": "3:cpu:/\n"}, machine},
		{"broken mount of a stranger", v2, tree{"/proc/self/mountinfo": "1 2 odd\n" + v2["/proc/self/mountinfo"], "/cg/pod/memory.max": "1073741824\n"}, byV2(gib, "/cg/pod")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.tree.with(tt.files).reader().Limit()
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// On a real disk: a root that is not "/", a file where a directory should be
// (ENOTDIR), and files that change between two calls.
func TestLimitIsReadAnew(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for name, text := range v2 {
		write(name, text)
	}
	write("/cg/file", "in the way of a directory")
	r := New(root)

	check := func(want int64, dir string) {
		got, err := r.Limit()
		require.NoError(t, err)
		require.Equal(t, want, got.Bytes)
		require.Equal(t, dir, got.Dir)
	}
	check(memTotal, "")
	write("/cg/pod/ctr/memory.max", "1073741824\n") // resized
	check(gib, "/cg/pod/ctr")
	write("/cg/other/memory.max", "536870912\n") // moved
	write("/proc/self/cgroup", "0::/other\n")
	check(512*mib, "/cg/other")
	write("/proc/self/cgroup", "0::/file/below\n")
	check(memTotal, "")

	write("/cg/other/memory.max", "x\n")
	write("/proc/self/cgroup", "0::/other\n")
	_, err := r.Limit()
	require.ErrorContains(t, err, filepath.Join(root, "cg", "other", "memory.max"), "the path that an operator can look at")
}

func TestReaderIsSafeForConcurrentUse(t *testing.T) {
	r := New(filepath.Join("testdata", "hybrid"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := r.Limit()
			if err != nil || got.Bytes != gib {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
}
