// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Trees as they are found on machines, read from disk.
func TestSampleOfRealWorldTrees(t *testing.T) {
	const kib = 1024
	for _, tt := range []struct {
		tree string
		want Sample
	}{
		{"v2_pod", Sample{426057728, 549453824, Pressure{12.34, 7.05}, 32768000 * kib, 16384000 * kib, Pressure{1.53, 0.26}, nil}},
		{"v1_docker", Sample{222298112, 285212672, noPressure, 8192000 * kib, 4096000 * kib, noPressure, nil}},
		// The pressure in the v2 hierarchy is that of another cgroup.
		{"hybrid", Sample{222298112, 285212672, noPressure, 24683620 * kib, 12341810 * kib, Pressure{0, 0}, nil}},
		{"v2_host", Sample{Unknown, Unknown, noPressure, 16384000 * kib, 8192000 * kib, noPressure, nil}}, // no usage in this one
	} {
		t.Run(tt.tree, func(t *testing.T) {
			require.Equal(t, tt.want, sampler(t, New(filepath.Join("testdata", tt.tree))).Sample())
		})
	}
}

// sampler returns a Sampler for the limit that r finds.
func sampler(t *testing.T, r *Reader) *Sampler {
	l, err := r.Limit()
	require.NoError(t, err)
	s := r.Sampler(l)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

const (
	some = "some avg10=2.50 avg60=0.00 avg300=0.00 total=1\n"
	full = "full avg10=1.25 avg60=0.00 avg300=0.00 total=1\n"
)

// The trees of the limits' tests with usage in the process's cgroup.
var (
	usageV2 = v2.with(tree{
		"/proc/meminfo":               meminfo + "MemAvailable: 2048 kB\n",
		"/proc/pressure/memory":       "some avg10=20.00 avg60=0\nfull avg10=10.00 avg60=0\n",
		"/cg/pod/ctr/memory.current":  "1000\n",
		"/cg/pod/ctr/memory.pressure": some + full,
		"/cg/pod/ctr/memory.stat":     "anon 100\nfile 800\nshmem 10\ninactive_file 300\n",
	})
	usageV1 = v1.with(tree{
		"/proc/meminfo":                          usageV2["/proc/meminfo"],
		"/proc/pressure/memory":                  usageV2["/proc/pressure/memory"],
		"/cg/pod/ctr/memory.usage_in_bytes":      "1000\n",
		"/cg/pod/ctr/memory.kmem.usage_in_bytes": "7\n",
		"/cg/pod/ctr/memory.stat": "rss 1\nshmem 1\ninactive_file 1\nhierarchical_memory_limit " + v1Unlimited +
			"total_rss 100\ntotal_shmem 10\ntotal_dirty 5\ntotal_inactive_file 300\n",
	})

	goodV2 = Sample{110, 700, Pressure{2.5, 1.25}, memTotal, 2 * mib, Pressure{20, 10}, nil}
	goodV1 = Sample{117, 700, noPressure, memTotal, 2 * mib, Pressure{20, 10}, nil}
)

// without returns a sample that lacks the figures of a probe.
func (s Sample) without(p Probe) Sample {
	switch p {
	case ProbeUsage:
		s.Unreclaimable, s.WorkingSet = Unknown, Unknown
	case ProbePressure:
		s.Pressure = noPressure
	case ProbeMachine:
		s.MachineTotal, s.MachineAvailable = Unknown, Unknown
	case ProbeMachinePressure:
		s.MachinePressure = noPressure
	}
	return s
}

// Neither tree has a limit, so that it is the process's own cgroup that is sampled.
func TestSampleOfTheOwnCgroupWhereNoneGoverns(t *testing.T) {
	require.Equal(t, goodV2, sampler(t, usageV2.disk().reader()).Sample())
	require.Equal(t, goodV1, sampler(t, usageV1.disk().reader()).Sample())
}

func TestSampleWhereTheLimitGoverns(t *testing.T) {
	got := sampler(t, usageV2.with(tree{
		"/cg/pod/memory.max":     "1073741824\n",
		"/cg/pod/memory.current": "5000\n",
		"/cg/pod/memory.stat":    "anon 3000\n",
	}).disk().reader()).Sample()
	require.Equal(t, int64(3000), got.Unreclaimable)
	require.Equal(t, int64(5000), got.WorkingSet)
	require.Equal(t, noPressure, got.Pressure, "it has no file of PSI, and its child's is none of its own")
}

func TestUsage(t *testing.T) {
	const stat = "/cg/pod/ctr/memory.stat"
	limit := "hierarchical_memory_limit " + v1Unlimited
	for _, tt := range []struct {
		name                      string
		tree                      tree
		files                     tree
		unreclaimable, workingSet int64
	}{
		{"v2 all that counts", usageV2, tree{stat: "anon 1\nkernel_stack 2\npagetables 4\npercpu 8\nsock 16\nslab_unreclaimable 32\nshmem 64\nfile_dirty 128\nfile_writeback 256\n"}, 511, 1000},
		{"v2 what does not", usageV2, tree{stat: "anon 1\nfile 2\nkernel 4\nslab_reclaimable 8\nslab 16\nactive_file 32\nactive_anon 64\nanon_thp 128\nanonymous 256\n"}, 1, 1000},
		{"v2 any order, no final newline", usageV2, tree{stat: "shmem 10\ninactive_file 300\nanon 100"}, 110, 700},
		{"v2 longer than a page", usageV2, tree{stat: strings.Repeat("pgscan_of_a_new_kernel 1\n", 400) + usageV2[stat]}, 110, 700},
		{"v2 more cache than usage", usageV2, tree{stat: "anon 100\ninactive_file 1001\n"}, 100, 0},
		{"v2 nothing in use", usageV2, tree{stat: "anon 0\n", "/cg/pod/ctr/memory.current": "0"}, 0, 0},
		{"v1 the hierarchy's fields only", usageV1, tree{stat: limit + "rss 1\nshmem 2\ncache 4\ntotal_rss 8\ntotal_shmem 16\ntotal_cache 32\ntotal_rss_huge 64\ninactive_file 128\n"}, 31, 1000},
		{"v1 without shmem", usageV1, tree{stat: limit + "total_rss 8\n"}, 15, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sampler(t, tt.tree.with(tt.files).disk().reader()).Sample()
			require.Empty(t, got.Failures)
			require.Equal(t, tt.unreclaimable, got.Unreclaimable)
			require.Equal(t, tt.workingSet, got.WorkingSet)
		})
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	for _, tree := range []string{"v1_docker", "v2_pod"} {
		t.Run(tree, func(t *testing.T) {
			s := sampler(t, New(filepath.Join("testdata", tree)))
			require.NotEqual(t, int64(Unknown), s.Sample().Unreclaimable)
			require.Zero(t, testing.AllocsPerRun(2*lookAgain, func() { s.Sample() }))
		})
	}
}

// On a real disk: a file that is open is read from its start, longer or shorter
// than before.
func TestSampleFollowsFilesThatAreOpen(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "v2_pod"))))
	r := New(root)
	l, err := r.Limit()
	require.NoError(t, err)
	s := sampler(t, r)
	require.Equal(t, int64(426057728), s.Sample().Unreclaimable)

	file := filepath.Join(root, filepath.FromSlash(l.Dir), "memory.stat")
	long := strings.Repeat("pgscan_of_a_new_kernel 1\n", 400)
	for i, before := range []string{"", long, ""} {
		require.NoError(t, os.WriteFile(file, []byte(before+"anon "+strconv.Itoa(i)), 0o600))
		got := s.Sample()
		require.Empty(t, got.Failures)
		require.EqualValues(t, i, got.Unreclaimable)
	}
}

// Also on a real disk: what does not fit or cannot be read.
func TestFailureNamesTheFileThatIsOpen(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "v2_pod"))))
	s := sampler(t, New(root))
	file := filepath.Join(root, "proc", "meminfo")
	require.NoError(t, os.WriteFile(file, make([]byte, len(s.buf)), 0o600))
	got := s.Sample()
	require.Len(t, got.Failures, 1)
	require.EqualError(t, got.Failures[0].Err, file+": want less than 32768 bytes")

	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	got = s.Sample()
	require.Len(t, got.Failures, 1)
	require.Equal(t, ProbeMachine, got.Failures[0].Probe)
	require.ErrorContains(t, got.Failures[0].Err, file+": ")
}

func TestFilesAreOpenedOnceAndClosed(t *testing.T) {
	d := usageV2.disk()
	s := sampler(t, d.reader())
	clear(d.opened)
	for range 3 * lookAgain {
		require.Equal(t, goodV2, s.Sample())
	}
	require.Equal(t, map[string]int{
		"/proc/self/cgroup": 1, "/proc/self/mountinfo": 1, // where there is no limit
		"/proc/meminfo": 1, "/proc/pressure/memory": 1,
		"/cg/pod/ctr/memory.stat": 1, "/cg/pod/ctr/memory.current": 1, "/cg/pod/ctr/memory.pressure": 1,
	}, d.opened)
	require.Equal(t, 5, d.held)
	require.NoError(t, s.Close())
	require.Zero(t, d.held)
	require.NoError(t, s.Close())

	d = usageV1.disk()
	s = sampler(t, d.reader())
	require.Equal(t, goodV1, s.Sample())
	require.Equal(t, 5, d.held)
	require.NoError(t, s.Close())
	require.Zero(t, d.held)
}

func TestSamplerTouchesNoFile(t *testing.T) {
	d := usageV2.disk()
	_ = d.reader().Sampler(Limit{})
	require.Empty(t, d.opened)
}

// A process moved into another cgroup, or a pod's directory made anew.
func TestCgroupRemovedAndMadeAgainIsFound(t *testing.T) {
	d := usageV2.disk()
	s := sampler(t, d.reader())
	require.Equal(t, goodV2, s.Sample())

	const dir = "/cg/pod/ctr/"
	files := []string{dir + "memory.stat", dir + "memory.current", dir + "memory.pressure"}
	for _, name := range files {
		d.remove(name)
		d.write(name, usageV2[name])
	}
	require.Equal(t, goodV2, s.Sample(), "between two samples: nobody notices")

	for _, name := range files {
		d.remove(name)
	}
	gone := goodV2.without(ProbeUsage).without(ProbePressure)
	require.Equal(t, gone, s.Sample(), "absent is no failure")
	for _, name := range files {
		d.write(name, usageV2[name])
	}
	for range lookAgain - 1 {
		require.Equal(t, gone, s.Sample())
	}
	require.Equal(t, goodV2, s.Sample())
	require.Equal(t, 5, d.held, "handles of what was removed are closed")
}

func TestAbsentFileIsLookedForNowAndThen(t *testing.T) {
	d := tree{"/proc/meminfo": usageV2["/proc/meminfo"]}.disk()
	s := sampler(t, d.reader())
	for range 2*lookAgain + 1 {
		s.Sample()
	}
	require.Equal(t, 3, d.opened["/proc/pressure/memory"])
}

func TestFileThatFailedIsTriedAgainByTheNextSample(t *testing.T) {
	for _, fails := range []func(f *inode){
		func(f *inode) { f.readErr = syscall.EIO },
		func(f *inode) { f.readErr, f.openErr = syscall.EIO, syscall.EACCES },
		func(f *inode) { f.text = "garbage" },
	} {
		d := usageV2.disk()
		s := sampler(t, d.reader())
		require.Equal(t, goodV2, s.Sample())
		f := d.files["/cg/pod/ctr/memory.stat"]
		good := *f
		fails(f)
		for range 2 {
			require.Len(t, s.Sample().Failures, 1)
		}
		*f = good
		require.Equal(t, goodV2, s.Sample())
	}
}
