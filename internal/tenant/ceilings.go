// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Ceilings are what one tenant may take, with nothing left to inherit. The registry shares them between
// tenants: they are never changed, only replaced.
type Ceilings struct {
	Weight         float64 // of its share of the line, and of the pool under pressure; above 0
	MaxConcurrent  int64   // batches at work at once
	MaxQueued      int64   // batches in line
	MemoryFraction float64 // of the pool
	MaxBatchMemory int64   // bytes of heap in one batch; 0: the process-wide ceiling alone
	MaxBatchItems  int64   // items in one batch; 0: the process-wide ceiling alone
	Rate           Rate
	Breaker        Breaker
}

// Rate is what a tenant may take over time.
type Rate struct {
	Requests, Items, Bytes PerSecond
	Burst                  time.Duration // what may be taken at once, as time at the rate; never less than one token
}

// Breaker says when a tenant is shut out: after this many breaches within the window, if they are at least
// this share of the batches that ended in it.
type Breaker struct {
	Breaches int64 // 0: never
	Window   time.Duration
	Ratio    float64
	Cooldown time.Duration // at least; it is jittered upward
}

// PerSecond is a rate in units per second. The zero value is no limit; a limit is between [MinRate] and
// [MaxRate].
type PerSecond float64

// The bounds of a rate. One in a quarter of an hour and a terabyte a second are beyond what is of use, and
// between them every computation is exact.
const (
	MinRate PerSecond = 1e-3
	MaxRate PerSecond = 1e12

	unlimited = "unlimited"
)

var errPerSecond = errors.New("a number from 0.001 to 1e12, or unlimited")

// UnmarshalText implements encoding.TextUnmarshaler. It refuses 0, which reads like "nothing" and would
// mean "no limit".
func (p *PerSecond) UnmarshalText(text []byte) error {
	s := string(text)
	if s == unlimited {
		*p = 0
		return nil
	}
	// strconv takes more than numbers as people write them: inf, nan, 0x1p4.
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return errPerSecond
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < float64(MinRate) || f > float64(MaxRate) {
		return errPerSecond
	}
	*p = PerSecond(f)
	return nil
}

// String returns the rate as UnmarshalText takes it.
func (p PerSecond) String() string {
	if p == 0 {
		return unlimited
	}
	return strconv.FormatFloat(float64(p), 'g', -1, 64)
}

// Override is what an operator says about one tenant. A field that is nil inherits.
type Override struct {
	Weight         *float64        `mapstructure:"weight"`
	MaxConcurrent  *int64          `mapstructure:"max_concurrent"`
	MaxQueued      *int64          `mapstructure:"max_queued"`
	MemoryFraction *float64        `mapstructure:"memory_fraction"`
	MaxBatchMemory *int64          `mapstructure:"max_batch_memory" strict:"size"`
	MaxBatchItems  *int64          `mapstructure:"max_batch_items" strict:"count"`
	Rate           RateOverride    `mapstructure:"rate"`
	Breaker        BreakerOverride `mapstructure:"breaker"`
}

// RateOverride is the part of an override that concerns rates.
type RateOverride struct {
	Requests *PerSecond     `mapstructure:"requests_per_second"`
	Items    *PerSecond     `mapstructure:"items_per_second"`
	Bytes    *PerSecond     `mapstructure:"bytes_per_second"`
	Burst    *time.Duration `mapstructure:"burst"`
}

// BreakerOverride is the part of an override that concerns the breaker.
type BreakerOverride struct {
	Breaches *int64         `mapstructure:"breaches" strict:"count"` // unlimited: never
	Window   *time.Duration `mapstructure:"window"`
	Ratio    *float64       `mapstructure:"ratio"`
	Cooldown *time.Duration `mapstructure:"cooldown"`
}

// Over returns c with the fields that o sets.
func (o Override) Over(c Ceilings) Ceilings {
	set(&c.Weight, o.Weight)
	set(&c.MaxConcurrent, o.MaxConcurrent)
	set(&c.MaxQueued, o.MaxQueued)
	set(&c.MemoryFraction, o.MemoryFraction)
	set(&c.MaxBatchMemory, o.MaxBatchMemory)
	set(&c.MaxBatchItems, o.MaxBatchItems)
	set(&c.Rate.Requests, o.Rate.Requests)
	set(&c.Rate.Items, o.Rate.Items)
	set(&c.Rate.Bytes, o.Rate.Bytes)
	set(&c.Rate.Burst, o.Rate.Burst)
	set(&c.Breaker.Breaches, o.Breaker.Breaches)
	set(&c.Breaker.Window, o.Breaker.Window)
	set(&c.Breaker.Ratio, o.Breaker.Ratio)
	set(&c.Breaker.Cooldown, o.Breaker.Cooldown)
	return c
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
