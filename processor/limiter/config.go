// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otel-governor/otel-governor/internal/strict"
)

// Config is the processor's configuration.
type Config struct {
	// Governor names the extension to ask. Unset, it is the only governor there is.
	Governor *ExtensionID `mapstructure:"governor"`
	// TenantAttribute is the resource attribute that names the tenant of what a resource sent, where the
	// request itself names none.
	TenantAttribute string `mapstructure:"tenant_attribute"`
	// Limits lower the governor's ceilings for what passes here.
	Limits LimitsConfig `mapstructure:"limits"`
}

// ExtensionID is the id of an extension.
type ExtensionID struct{ component.ID }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ExtensionID) UnmarshalText(text []byte) error {
	if err := id.ID.UnmarshalText(text); err != nil {
		return errors.New("the id of an extension such as governor or governor/name")
	}
	return nil
}

// LimitsConfig lowers ceilings. A limit that would raise one is an error when the processor starts, except
// that MaxConcurrent is capped.
type LimitsConfig struct {
	// MaxBatchMemory is the most heap in bytes that a batch may take.
	MaxBatchMemory *int64 `mapstructure:"max_batch_memory" strict:"size"`
	// MaxBatchItems is the most spans, data points, log records or samples of a batch.
	MaxBatchItems *int64 `mapstructure:"max_batch_items"`
	// MaxConcurrent is the number of batches at work behind this limiter at once; more of them wait.
	MaxConcurrent *int64 `mapstructure:"max_concurrent"`
	// ProcessingTimeout ends the context of a batch that is still at work.
	ProcessingTimeout *time.Duration `mapstructure:"processing_timeout"`
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

// Validate implements confmap.Validator.
func (c *Config) Validate() error {
	l := c.Limits
	return errors.Join(
		atLeast("max_batch_memory", l.MaxBatchMemory, 1),
		atLeast("max_batch_items", l.MaxBatchItems, 1),
		atLeast("max_concurrent", l.MaxConcurrent, 1),
		atLeast("processing_timeout", l.ProcessingTimeout, time.Millisecond),
	)
}

func atLeast[T int64 | time.Duration](name string, got *T, least T) error {
	if got == nil || *got >= least {
		return nil
	}
	return fmt.Errorf("'limits::%s' must be at least %v, got %v", name, least, *got)
}

func createDefaultConfig() component.Config { return &Config{} }
