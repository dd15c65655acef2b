// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/cgroupmem"
)

// treeV2 has every file of a machine with cgroup v2, by this folder, where both the table and the tests run.
const treeV2 = "../internal/cgroupmem/testdata/v2_pod"

// sampleMemory samples what there is below root: all of a v2 tree, and whatever this machine has.
func sampleMemory(root string) func(*testing.B) {
	return func(b *testing.B) {
		r := cgroupmem.New(root)
		l, err := r.Limit()
		require.NoError(b, err)
		s := r.Sampler(l)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		require.Empty(b, s.Sample().Failures)
		for b.Loop() {
			s.Sample()
		}
	}
}

func readMemStats(b *testing.B) {
	var stats runtime.MemStats
	for b.Loop() {
		runtime.ReadMemStats(&stats)
	}
}

func readGopsutil(b *testing.B) {
	for b.Loop() {
		if _, err := mem.VirtualMemoryWithContext(b.Context()); err != nil {
			panic(err)
		}
	}
}

// readProcfs reads what procfs has of a sample: the machine's memory and pressure.
func readProcfs(root string) func(*testing.B) {
	return func(b *testing.B) {
		fs, err := procfs.NewFS(filepath.Join(root, "proc"))
		require.NoError(b, err)
		for b.Loop() {
			if _, err := fs.Meminfo(); err != nil {
				panic(err)
			}
			if _, err := fs.PSIStatsForResource("memory"); err != nil {
				panic(err)
			}
		}
	}
}
