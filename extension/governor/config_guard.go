// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"
	"fmt"
	"time"
)

// GuardConfig says how the process is kept from running out of memory and disk.
type GuardConfig struct {
	// CheckInterval is how often the pressure on memory is looked at.
	CheckInterval time.Duration `mapstructure:"check_interval"`
	// CheckEvery is the number of batches, refused ones included, after which it is looked at in any case.
	CheckEvery int64 `mapstructure:"check_every"`
	// Hold is how long a level of pressure lasts at least, and for how long its cause must have been gone.
	Hold time.Duration `mapstructure:"hold"`
	// HeapHeadroomFraction is the share of what Go may hold that is left to garbage, so that collecting
	// it stays cheap.
	HeapHeadroomFraction float64 `mapstructure:"heap_headroom_fraction"`
	// GCCPUFraction is the share of the processors that collections may take which the governor starts.
	GCCPUFraction float64 `mapstructure:"gc_cpu_fraction"`
	// ElevatedFraction is the share of the room for batches that is in use when the heaviest tenants are
	// held to their fair shares.
	ElevatedFraction float64 `mapstructure:"elevated_fraction"`
	// CriticalFraction is the share of the memory limit that the kernel cannot take back when new work is
	// refused; of the machine's memory less its reserve, too.
	CriticalFraction float64 `mapstructure:"critical_fraction"`
	// MachineReserveFraction is the share of the machine's memory that is left to others.
	MachineReserveFraction float64 `mapstructure:"machine_reserve_fraction"`
	// ExemptLoopback lets in what comes from the machine itself while memory is critical.
	ExemptLoopback bool `mapstructure:"exempt_loopback"`
	// Disks are paths on disks whose free space is watched. Those of file_storage extensions are found.
	Disks []DiskConfig `mapstructure:"disks"`
}

// DiskConfig is a disk that is watched.
type DiskConfig struct {
	// Path is any path on the disk.
	Path string `mapstructure:"path"`
	// ReserveFraction and ReserveSize are what is kept free: a share of the disk or a size in bytes, whichever
	// is smaller. Unset, they are 0.1 and 2 GiB.
	ReserveFraction *float64 `mapstructure:"reserve_fraction"`
	ReserveSize     *int64   `mapstructure:"reserve_size" strict:"size"`
}

func (c DiskConfig) reserve() (fraction float64, size int64) {
	fraction, size = 0.1, 2<<30
	if c.ReserveFraction != nil {
		fraction = *c.ReserveFraction
	}
	if c.ReserveSize != nil {
		size = *c.ReserveSize
	}
	return fraction, size
}

func (c GuardConfig) validate(m MemoryConfig) error {
	var errs []error
	check := func(ok bool, key, must string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("'guard::%s' must be %s, got %v", key, must, got))
		}
	}
	share := func(f float64) bool { return f > 0 && f <= 1 }
	check(c.CheckInterval >= 10*time.Millisecond, "check_interval", "at least 10ms", c.CheckInterval)
	check(c.CheckEvery >= 1, "check_every", "at least 1", c.CheckEvery)
	check(c.Hold >= time.Second, "hold", "at least 1s", c.Hold)
	check(c.HeapHeadroomFraction >= 0 && c.HeapHeadroomFraction < 1, "heap_headroom_fraction", "in [0, 1)", c.HeapHeadroomFraction)
	check(c.GCCPUFraction >= 0 && c.GCCPUFraction <= 1, "gc_cpu_fraction", "in [0, 1]", c.GCCPUFraction)
	check(share(c.ElevatedFraction), "elevated_fraction", "in (0, 1]", c.ElevatedFraction)
	check(share(c.CriticalFraction), "critical_fraction", "in (0, 1]", c.CriticalFraction)
	check(c.MachineReserveFraction >= 0 && c.MachineReserveFraction < 1,
		"machine_reserve_fraction", "in [0, 1)", c.MachineReserveFraction)
	check(!share(c.ElevatedFraction) || !share(c.CriticalFraction) || c.ElevatedFraction < c.CriticalFraction,
		"elevated_fraction", fmt.Sprintf("below 'guard::critical_fraction', which is %v", c.CriticalFraction), c.ElevatedFraction)
	check(c.CriticalFraction > m.GoMemLimitFraction, "critical_fraction",
		fmt.Sprintf("above 'memory::gomemlimit_fraction', which is %v, since Go fills that with garbage", m.GoMemLimitFraction),
		c.CriticalFraction)
	for i, d := range c.Disks {
		fraction, size := d.reserve()
		key := func(name string) string { return fmt.Sprintf("disks::%d::%s", i, name) }
		check(d.Path != "", key("path"), "a path", "nothing")
		check(fraction >= 0 && fraction <= 1, key("reserve_fraction"), "in [0, 1]", fraction)
		check(size >= 0, key("reserve_size"), "at least 0", size)
	}
	return errors.Join(errs...)
}

// DoorConfig says what is refused before it is decoded. It is in force on receivers that name the governor
// among their middlewares.
type DoorConfig struct {
	// GRPCTap refuses gRPC requests by their headers. A server has one tap only: turn it off where another
	// middleware brings one.
	GRPCTap bool `mapstructure:"grpc_tap"`
	// MaxConnections is the number of gRPC connections; the requests of further ones are refused.
	MaxConnections int64 `mapstructure:"max_connections" strict:"count"`
}

func (c DoorConfig) validate() error {
	if c.MaxConnections < 1 {
		return fmt.Errorf("'door::max_connections' must be at least 1, or unlimited, got %d", c.MaxConnections)
	}
	return nil
}
