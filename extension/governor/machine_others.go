// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package governor

import (
	"math"

	"github.com/shirou/gopsutil/v4/mem"
)

// readMachine asks for the machine's physical memory: only Linux has cgroups. That it cannot be had is no
// error.
func readMachine() (machine, error) {
	m, err := mem.VirtualMemory()
	if err != nil || m.Total == 0 {
		return machine{source: sourceFallback}, nil
	}
	return machine{limit: int64(min(m.Total, math.MaxInt64)), source: sourcePhysical}, nil
}
