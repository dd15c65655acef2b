// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otel-governor/otel-governor/internal/strict"
)

// minPoolSize is the smallest pool that is of use: a handful of ordinary batches. A smaller one refuses
// nearly everything, which is a misconfiguration and not a limit.
const minPoolSize = 32 << 20

// Mode says what becomes of a batch that a limit forbids.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "enforce" // it is refused
	ModeObserve Mode = "observe" // it is admitted at once, and counted as what it would have been refused for
)

// Config is the extension's configuration.
type Config struct {
	Mode      Mode            `mapstructure:"mode"`
	Memory    MemoryConfig    `mapstructure:"memory"`
	Admission AdmissionConfig `mapstructure:"admission"`
	Tenants   TenantsConfig   `mapstructure:"tenants"`
	Guard     GuardConfig     `mapstructure:"guard"`
	Door      DoorConfig      `mapstructure:"door"`
	Telemetry TelemetryConfig `mapstructure:"telemetry"`
}

// MemoryConfig says how large the pool is.
type MemoryConfig struct {
	// PoolSize is the pool's size in bytes. Unset, it is derived from the memory limit.
	PoolSize *int64 `mapstructure:"pool_size" strict:"size"`
	// PoolFraction is the share of the memory limit that becomes the pool. Unset, it is 0.75, or 0.50
	// where something keeps data after it was answered for.
	PoolFraction *float64 `mapstructure:"pool_fraction"`
	// RefreshInterval is how often the memory limit is read again.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`
	// GoMemLimitFraction is the share of the memory limit that becomes Go's soft limit; 0 leaves Go's alone.
	GoMemLimitFraction float64 `mapstructure:"gomemlimit_fraction"`
}

// AdmissionConfig says what holds for all batches together and for each by itself.
type AdmissionConfig struct {
	// MaxConcurrent is the number of batches at work at once.
	MaxConcurrent int64 `mapstructure:"max_concurrent"`
	// MaxQueued is the number of batches that may wait; 0 refuses at once what does not fit.
	MaxQueued int64 `mapstructure:"max_queued"`
	// MaxQueuedFraction is the share of the pool that may wait.
	MaxQueuedFraction float64 `mapstructure:"max_queued_fraction"`
	// QueueTimeout is the longest that a batch waits.
	QueueTimeout time.Duration `mapstructure:"queue_timeout"`
	// ProcessingTimeout ends the context of a batch that is still at work; 0 never does.
	ProcessingTimeout time.Duration `mapstructure:"processing_timeout"`
	// MaxBatchMemory is the most heap in bytes that a batch may take. Unset, it is the smaller of 100 MiB
	// and half of the budget.
	MaxBatchMemory *int64 `mapstructure:"max_batch_memory" strict:"size"`
	// MaxBatchItems is the most spans, data points, log records or samples of a batch.
	MaxBatchItems int64 `mapstructure:"max_batch_items" strict:"count"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal implements confmap.Unmarshaler. Where a value cannot be decoded it also validates the others,
// so that all faults are reported together.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := strict.Decode(conf, c); err != nil {
		return errors.Join(err, c.Validate())
	}
	return nil
}

// Validate implements confmap.Validator. What depends on the machine is checked when the governor starts.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("'%s' must be %s, got %v", key, must, got))
		}
	}
	m, a := c.Memory, c.Admission
	check(c.Mode == ModeEnforce || c.Mode == ModeObserve, "mode", "enforce or observe", c.Mode)
	if m.PoolSize != nil {
		check(*m.PoolSize >= minPoolSize, "memory::pool_size", "at least 32MiB (33554432)", *m.PoolSize)
	}
	if m.PoolFraction != nil {
		check(*m.PoolFraction > 0 && *m.PoolFraction <= 1, "memory::pool_fraction", "in (0, 1]", *m.PoolFraction)
	}
	check(m.RefreshInterval >= 10*time.Millisecond, "memory::refresh_interval", "at least 10ms", m.RefreshInterval)
	check(m.GoMemLimitFraction >= 0 && m.GoMemLimitFraction <= 1,
		"memory::gomemlimit_fraction", "in [0, 1]", m.GoMemLimitFraction)
	check(a.MaxConcurrent >= 1, "admission::max_concurrent", "at least 1", a.MaxConcurrent)
	check(a.MaxQueued >= 0, "admission::max_queued", "at least 0", a.MaxQueued)
	check(a.MaxQueuedFraction >= 0 && a.MaxQueuedFraction <= 1,
		"admission::max_queued_fraction", "in [0, 1]", a.MaxQueuedFraction)
	check(a.QueueTimeout >= time.Millisecond, "admission::queue_timeout", "at least 1ms", a.QueueTimeout)
	check(a.ProcessingTimeout == 0 || a.ProcessingTimeout >= time.Millisecond,
		"admission::processing_timeout", "0 for none, or at least 1ms", a.ProcessingTimeout)
	if a.MaxBatchMemory != nil {
		check(*a.MaxBatchMemory >= 1, "admission::max_batch_memory", "at least 1", *a.MaxBatchMemory)
	}
	check(a.MaxBatchItems >= 1, "admission::max_batch_items", "at least 1, or unlimited", a.MaxBatchItems)
	errs = append(errs, c.Tenants.validate(a), c.Guard.validate(m), c.Door.validate(), c.Telemetry.validate())
	return errors.Join(errs...)
}

// createDefaultConfig returns the defaults. Those that differ from what the field started with are
// reasoned in docs/decisions.
func createDefaultConfig() *Config {
	return &Config{
		Mode: ModeEnforce,
		Memory: MemoryConfig{
			RefreshInterval:    30 * time.Second,
			GoMemLimitFraction: 0.9,
		},
		Admission: AdmissionConfig{
			MaxConcurrent:     1024,
			MaxQueued:         256,
			MaxQueuedFraction: 0.125,
			QueueTimeout:      time.Second,
			ProcessingTimeout: 30 * time.Second,
			MaxBatchItems:     strict.Unlimited,
		},
		Tenants: TenantsConfig{MaxTracked: 10000, IdleTimeout: 10 * time.Minute},
		Guard: GuardConfig{
			CheckInterval:          100 * time.Millisecond,
			CheckEvery:             64,
			Hold:                   time.Second,
			HeapHeadroomFraction:   0.25,
			GCCPUFraction:          0.02,
			ElevatedFraction:       0.85,
			CriticalFraction:       0.95,
			MachineReserveFraction: 0.10,
		},
		Door:      DoorConfig{GRPCTap: true, MaxConnections: strict.Unlimited},
		Telemetry: TelemetryConfig{Tenants: TenantsNone, Top: 20},
	}
}
