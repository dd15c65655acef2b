// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// sampled are the files of a sample, with what it is without each.
var sampled = []struct {
	tree    tree
	good    Sample
	file    string
	probe   Probe
	missing Sample
}{
	{usageV2, goodV2, "/cg/pod/ctr/memory.stat", ProbeUsage, goodV2.without(ProbeUsage)},
	{usageV2, goodV2, "/cg/pod/ctr/memory.current", ProbeUsage, noWorkingSet(goodV2)},
	{usageV2, goodV2, "/cg/pod/ctr/memory.pressure", ProbePressure, goodV2.without(ProbePressure)},
	{usageV2, goodV2, "/proc/meminfo", ProbeMachine, goodV2.without(ProbeMachine)},
	{usageV2, goodV2, "/proc/pressure/memory", ProbeMachinePressure, goodV2.without(ProbeMachinePressure)},
	{usageV1, goodV1, "/cg/pod/ctr/memory.stat", ProbeUsage, goodV1.without(ProbeUsage)},
	{usageV1, goodV1, "/cg/pod/ctr/memory.usage_in_bytes", ProbeUsage, noWorkingSet(goodV1)},
	{usageV1, goodV1, "/cg/pod/ctr/memory.kmem.usage_in_bytes", ProbeUsage, noKernelMemory(goodV1)},
}

func noWorkingSet(s Sample) Sample {
	s.WorkingSet = Unknown
	return s
}

func noKernelMemory(s Sample) Sample {
	s.Unreclaimable -= 7
	return s
}

func TestMissingFileIsNoFailure(t *testing.T) {
	for _, tt := range sampled {
		for _, cause := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.EOPNOTSUPP} {
			t.Run(tt.file+" "+cause.Error(), func(t *testing.T) {
				d := tt.tree.disk()
				d.files[tt.file].readErr = cause // EOPNOTSUPP comes so late: PSI switched off at boot
				require.Equal(t, tt.missing, d.sampler(t).Sample())
				d = tt.tree.disk()
				d.files[tt.file].openErr = cause
				require.Equal(t, tt.missing, d.sampler(t).Sample())
			})
		}
	}
}

// sampler returns a Sampler for the process's cgroup, whose limit was read in
// better times.
func (d *disk) sampler(t *testing.T) *Sampler {
	s := d.reader().Sampler(Limit{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestNothingIsKnownOnOtherSystems(t *testing.T) {
	want := Sample{Unknown, Unknown, noPressure, Unknown, Unknown, noPressure, nil}
	require.Equal(t, want, tree{}.disk().sampler(t).Sample())
	require.Equal(t, want, tree{"/proc/self/cgroup": "0::/pod\n"}.disk().sampler(t).Sample())
	require.Equal(t, want, New(t.TempDir()).Sampler(Limit{}).Sample())
}

func TestUnreadableFileIsAFailureOfItsProbeAlone(t *testing.T) {
	for _, tt := range sampled {
		for _, cause := range []error{syscall.EACCES, syscall.EIO, syscall.ENODEV, syscall.EMFILE} {
			t.Run(tt.file+" "+cause.Error(), func(t *testing.T) {
				for _, fails := range []func(*inode){
					func(f *inode) { f.openErr = cause },
					func(f *inode) { f.readErr = cause },
				} {
					d := tt.tree.disk()
					fails(d.files[tt.file])
					requireFailure(t, d, tt.good, tt.probe, func(err error) {
						require.ErrorIs(t, err, cause)
						require.ErrorContains(t, err, filepath.FromSlash(tt.file)+": ")
					})
				}
			})
		}
	}
}

// requireFailure asserts that a sample is a good one but for the one probe.
func requireFailure(t *testing.T, d *disk, good Sample, p Probe, check func(error)) {
	got := d.sampler(t).Sample()
	require.Len(t, got.Failures, 1)
	require.Equal(t, p, got.Failures[0].Probe)
	check(got.Failures[0].Err)
	got.Failures = nil
	require.Equal(t, good.without(p), got)
}

func TestGarbageIsAFailureOfItsProbeAlone(t *testing.T) {
	const number = "want a number of bytes, found "
	bytes := map[string]string{ // content to message
		"":                  number + `""`,
		"\n":                number + `"\n"`,
		"max\n":             number + `"max\n"`,
		"-1\n":              number + `"-1\n"`,
		"+1\n":              number + `"+1\n"`,
		"1e9\n":             number + `"1e9\n"`,
		"1 2\n":             number + `"1 2\n"`,
		"72057594037927936": number + `"72057594037927936"`,
	}
	stat := func(first string) map[string]string {
		return map[string]string{
			"":                          "want a line " + first + `, found ""`,
			"file 5\nshmem 5\n":         "want a line " + first + `, found "file 5\nshmem 5\n"`,
			first + "\n":                first + ": " + number + `""`,
			first + " \nx 1\n":          first + ": " + number + `""`,
			first + " 1 2\n":            first + ": " + number + `"1 2"`,
			first + "\t1\n":             "want a line " + first + `, found "` + first + `\t1\n"`,
			" " + first + " 1\n":        "want a line " + first + `, found " ` + first + ` 1\n"`,
			first + " -1\n":             first + ": " + number + `"-1"`,
			strings.Repeat(" ", 32<<10): "want less than 32768 bytes",
		}
	}
	v2Stat, v1Stat := stat("anon"), stat("total_rss")
	v2Stat["anon 1\nsock x\n"] = "sock: " + number + `"x"`
	v2Stat["anon 1\ninactive_file x"] = "inactive_file: " + number + `"x"`
	v1Stat["total_rss 1\ntotal_shmem x\n"] = "total_shmem: " + number + `"x"`
	v1Stat["total_rss 1\ntotal_inactive_file x\n"] = "total_inactive_file: " + number + `"x"`
	psi := map[string]string{
		"":                      `want a line some avg10=, found ""`,
		full:                    `want a line some avg10=, found ` + quote(full),
		some:                    `want a line full avg10=, found ` + quote(some),
		"some avg10=\n" + full:  `want some avg10=a percentage, found "some avg10=\n"`,
		"some avg10=x y\n":      `want some avg10=a percentage, found "some avg10=x y\n"`,
		"some avg10=NaN y\n":    `want some avg10=a percentage, found "some avg10=NaN y\n"`,
		"some avg10=Inf y\n":    `want some avg10=a percentage, found "some avg10=Inf y\n"`,
		"some avg10=-0.01 y\n":  `want some avg10=a percentage, found "some avg10=-0.01 y\n"`,
		"some avg10=100.01 y\n": `want some avg10=a percentage, found "some avg10=100.01 y\n"`,
		some + "full avg10=.\n": `want full avg10=a percentage, found "full avg10=.\n"`,
	}
	garbage := map[string]map[string]string{
		"/cg/pod/ctr/memory.current":             bytes,
		"/cg/pod/ctr/memory.usage_in_bytes":      bytes,
		"/cg/pod/ctr/memory.kmem.usage_in_bytes": bytes,
		"/cg/pod/ctr/memory.pressure":            psi,
		"/proc/pressure/memory":                  psi,
		"/proc/meminfo": {
			"MemTotal: x kB\nMemAvailable: 5 kB\n": `want MemTotal in kB, found "MemTotal: x kB\n"`,
			"MemTotal: 5 kB\nMemAvailable: 5\n":    `want MemAvailable in kB, found "MemAvailable: 5\n"`,
			"MemTotal: 5 kB\nMemAvailable:":        `want MemAvailable in kB, found "MemAvailable:"`,
		},
	}
	for _, tt := range sampled {
		cases := garbage[tt.file]
		if strings.HasSuffix(tt.file, "memory.stat") {
			cases = v2Stat
			if tt.tree["/cg/memory.stat"] != "" {
				cases = v1Stat
			}
		}
		for text, message := range cases {
			t.Run(tt.file+" "+quote(text), func(t *testing.T) {
				d := tt.tree.with(tree{tt.file: text}).disk()
				requireFailure(t, d, tt.good, tt.probe, func(err error) {
					require.EqualError(t, err, filepath.FromSlash(tt.file)+": "+message)
				})
			})
		}
	}
}

// Without both, their difference would say nothing.
func TestMachineIsUnknownWithoutEitherFigure(t *testing.T) {
	for _, text := range []string{"", "MemTotal: 5 kB\n", "MemAvailable: 5 kB\n"} {
		got := usageV2.with(tree{"/proc/meminfo": text}).disk().sampler(t).Sample()
		require.Equal(t, goodV2.without(ProbeMachine), got)
	}
}

func TestCgroupThatCannotBeFoundIsLookedForByTheNextSample(t *testing.T) {
	for _, file := range []string{"/proc/self/cgroup", "/proc/self/mountinfo"} {
		d := usageV2.disk()
		d.files[file].readErr = syscall.EIO
		s := d.sampler(t)
		for range 2 {
			got := s.Sample()
			require.Len(t, got.Failures, 2)
			for i, probe := range []Probe{ProbeUsage, ProbePressure} {
				require.Equal(t, probe, got.Failures[i].Probe)
				require.ErrorIs(t, got.Failures[i].Err, syscall.EIO)
				require.ErrorContains(t, got.Failures[i].Err, filepath.FromSlash(file)+": ")
			}
			got.Failures = nil
			require.Equal(t, goodV2.without(ProbeUsage).without(ProbePressure), got)
		}
		d.files[file].readErr = nil
		require.Equal(t, goodV2, s.Sample())
	}
}
