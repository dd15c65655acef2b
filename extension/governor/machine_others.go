// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package governor

import (
	"math"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/otel-governor/otel-governor/internal/cgroupmem"
)

// whole is the kernel that has no cgroups.
type whole struct{}

func newKernel() kernel { return whole{} }

// limit returns the machine's physical memory. That it cannot be had is no error.
func (whole) limit() (machine, error) {
	m, err := mem.VirtualMemory()
	if err != nil || m.Total == 0 {
		return machine{source: sourceFallback}, nil
	}
	return machine{limit: int64(min(m.Total, math.MaxInt64)), source: sourcePhysical}, nil
}

func (whole) sample() (s cgroupmem.Sample) {
	s.Unreclaimable, s.WorkingSet, s.MachineTotal, s.MachineAvailable =
		cgroupmem.Unknown, cgroupmem.Unknown, cgroupmem.Unknown, cgroupmem.Unknown
	return s
}

func (whole) close() {}
