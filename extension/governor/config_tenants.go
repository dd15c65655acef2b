// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otel-governor/otel-governor/internal/strict"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

// TenantsConfig says who is who, and what each may take.
type TenantsConfig struct {
	// AuthAttributes are the attributes of an authenticated client that name its tenant.
	AuthAttributes []string `mapstructure:"auth_attributes"`
	// MetadataKeys are the request headers that do. Receivers need include_metadata: true.
	MetadataKeys []string `mapstructure:"metadata_keys"`
	// Allow lists the only tenants there are; empty, everybody is one.
	Allow []string `mapstructure:"allow"`
	// MaxTracked is how many tenants are told apart; further ones share a tenant.
	MaxTracked int64 `mapstructure:"max_tracked"`
	// IdleTimeout is for how long a tenant must be idle to be forgotten.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	// Defaults are every tenant's ceilings, as far as they differ from the built-in ones.
	Defaults tenant.Override `mapstructure:"defaults"`
	// Overrides are the ceilings of single tenants, field by field.
	Overrides map[string]tenant.Override `mapstructure:"overrides"`
	// OverridesFile holds more of them in a file that is read again when it changes. Its overrides go
	// before those here.
	OverridesFile string `mapstructure:"overrides_file"`
}

// builtin are the ceilings of a tenant about which nothing is said.
var builtin = tenant.Ceilings{
	Weight:         1,
	MaxConcurrent:  64,
	MaxQueued:      64,
	MemoryFraction: 0.5,
	Rate:           tenant.Rate{Burst: 2 * time.Second},
	Breaker:        tenant.Breaker{Breaches: 8, Window: 10 * time.Second, Ratio: 0.5, Cooldown: 5 * time.Second},
}

// ceilings are every tenant's.
func (c *TenantsConfig) ceilings() tenant.Ceilings { return c.Defaults.Over(builtin) }

// identified reports whether tenants are told apart by what comes with a request.
func (c *TenantsConfig) identified() bool { return len(c.AuthAttributes)+len(c.MetadataKeys) > 0 }

func (c *TenantsConfig) validate(a AdmissionConfig) error {
	var errs []error
	if c.MaxTracked < 1 {
		errs = append(errs, fmt.Errorf("'tenants::max_tracked' must be at least 1, got %d", c.MaxTracked))
	}
	if n := int64(len(c.Overrides)); n > c.MaxTracked {
		errs = append(errs, fmt.Errorf("'tenants::max_tracked' is %d and there are %d overrides: raise it", c.MaxTracked, n))
	}
	if n := int64(len(c.Allow)); n > c.MaxTracked {
		errs = append(errs, fmt.Errorf("'tenants::max_tracked' is %d and 'tenants::allow' has %d tenants: raise it", c.MaxTracked, n))
	}
	for _, name := range c.Allow {
		if len(name) >= tenant.MaxName {
			errs = append(errs, fmt.Errorf("'tenants::allow' must hold names shorter than %d bytes, got one of %d", tenant.MaxName, len(name)))
		}
	}
	if _, empty := c.Overrides[""]; empty {
		errs = append(errs, errors.New("'tenants::overrides' must hold names, got an empty one"))
	}
	if c.IdleTimeout < time.Second {
		errs = append(errs, fmt.Errorf("'tenants::idle_timeout' must be at least 1s, got %v", c.IdleTimeout))
	}
	errs = append(errs, validateOverride("tenants::defaults::", c.Defaults, a))
	for _, name := range slices.Sorted(maps.Keys(c.Overrides)) {
		errs = append(errs, validateOverride("tenants::overrides::"+tenant.Show(name)+"::", c.Overrides[name], a))
	}
	return errors.Join(errs...)
}

// validateOverride checks the ranges of what o sets.
func validateOverride(prefix string, o tenant.Override, a AdmissionConfig) error {
	c := o.Over(builtin)
	var errs []error
	check := func(ok bool, key, must string, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("'%s%s' must be %s, got %v", prefix, key, must, got))
		}
	}
	check(c.Weight >= 0.001 && c.Weight <= 1000, "weight", "from 0.001 to 1000", c.Weight)
	check(c.MaxConcurrent >= 1, "max_concurrent", "at least 1", c.MaxConcurrent)
	check(c.MaxQueued >= 0, "max_queued", "at least 0", c.MaxQueued)
	check(c.MemoryFraction > 0 && c.MemoryFraction <= 1, "memory_fraction", "in (0, 1]", c.MemoryFraction)
	if o.MaxBatchMemory != nil {
		check(c.MaxBatchMemory >= 1, "max_batch_memory", "at least 1", c.MaxBatchMemory)
		if most := a.MaxBatchMemory; most != nil {
			check(c.MaxBatchMemory <= *most, "max_batch_memory",
				fmt.Sprintf("at most 'admission::max_batch_memory' of %d", *most), c.MaxBatchMemory)
		}
	}
	if o.MaxBatchItems != nil {
		check(c.MaxBatchItems >= 1, "max_batch_items", "at least 1, or unlimited", c.MaxBatchItems)
		check(c.MaxBatchItems <= a.MaxBatchItems || c.MaxBatchItems == strict.Unlimited, "max_batch_items",
			fmt.Sprintf("at most 'admission::max_batch_items' of %d", a.MaxBatchItems), c.MaxBatchItems)
	}
	check(c.Rate.Burst >= time.Millisecond && c.Rate.Burst <= time.Hour, "rate::burst", "from 1ms to 1h", c.Rate.Burst)
	check(c.Breaker.Breaches >= 1, "breaker::breaches", "at least 1, or unlimited", c.Breaker.Breaches)
	check(c.Breaker.Window >= time.Second && c.Breaker.Window <= time.Hour, "breaker::window", "from 1s to 1h", c.Breaker.Window)
	check(c.Breaker.Ratio >= 0 && c.Breaker.Ratio <= 1, "breaker::ratio", "in [0, 1]", c.Breaker.Ratio)
	check(c.Breaker.Cooldown >= time.Second && c.Breaker.Cooldown <= 30*time.Second,
		"breaker::cooldown", "from 1s to 30s", c.Breaker.Cooldown)
	return errors.Join(errs...)
}

// overridesFile is what an overrides file holds.
type overridesFile struct {
	Overrides map[string]tenant.Override `mapstructure:"overrides"`
}

// parseOverrides decodes and validates the text of an overrides file: one key, overrides, with what
// tenants::overrides has too.
func (c *Config) parseOverrides(text []byte) (map[string]tenant.Override, error) {
	r, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return nil, err
	}
	conf, err := r.AsConf()
	if err != nil {
		return nil, err
	}
	var f overridesFile
	if err := strict.Decode(conf, &f); err != nil {
		return nil, err
	}
	all := maps.Clone(c.Tenants.Overrides)
	if all == nil {
		all = map[string]tenant.Override{}
	}
	maps.Copy(all, f.Overrides)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.Overrides)) {
		errs = append(errs, validateOverride("overrides::"+tenant.Show(name)+"::", f.Overrides[name], c.Admission))
	}
	if n := int64(len(all)); n > c.Tenants.MaxTracked {
		errs = append(errs, fmt.Errorf("'tenants::max_tracked' is %d and there are %d overrides: raise it", c.Tenants.MaxTracked, n))
	}
	return all, errors.Join(errs...)
}

// Which tenants telemetry tells apart.
const (
	TenantsNone       = "none"
	TenantsConfigured = "configured" // those with an override
	TenantsTop        = "top"        // those that hold most
)

// TelemetryConfig bounds what telemetry says of single tenants.
type TelemetryConfig struct {
	// Tenants is none, configured or top.
	Tenants string `mapstructure:"tenants"`
	// Top is how many of them at most; the others are _other.
	Top int64 `mapstructure:"top"`
}

func (c TelemetryConfig) validate() error {
	var errs []error
	if !slices.Contains([]string{TenantsNone, TenantsConfigured, TenantsTop}, c.Tenants) {
		errs = append(errs, fmt.Errorf("'telemetry::tenants' must be none, configured or top, got %s", c.Tenants))
	}
	if c.Top < 1 || c.Top > 1000 {
		errs = append(errs, fmt.Errorf("'telemetry::top' must be from 1 to 1000, got %d", c.Top))
	}
	return errors.Join(errs...)
}
