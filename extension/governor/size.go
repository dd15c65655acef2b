// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/internal/cgroupmem"
	"github.com/otel-governor/otel-governor/internal/pressure"
)

const (
	// fallbackPoolSize is the pool where nothing says how much memory there is.
	fallbackPoolSize = 1 << 30
	// A pool takes three quarters of the limit where every lease covers all there is of its batch, and
	// half where batches live on in queues that no lease covers.
	synchronousFraction  = 0.75
	asynchronousFraction = 0.50
	// defaultMaxBatchMemory is the largest batch unless the configuration says otherwise, where half of the
	// budget is not smaller still.
	defaultMaxBatchMemory = 100 << 20
)

// machine is how much memory the process may use.
type machine struct {
	limit  int64  // bytes; 0 if unknown
	source string // who says so: cgroup_v2, cgroup_v1, meminfo, physical or fallback
	chosen bool   // somebody set it, so that it is not just all there is
}

// kernel says how much memory there is and how much is used. It is used by one goroutine at a time.
type kernel interface {
	limit() (machine, error)
	sample() cgroupmem.Sample
	close()
}

// sizing is how large the pool is and why.
type sizing struct {
	machine
	pool     int64   // bytes
	origin   string  // of the pool's size: explicit, or the machine's source
	fraction float64 // of the limit; 0 if the pool's size is set or the limit unknown
	budget   int64   // bytes of live heap that Go can hold
	critical int64   // bytes of live heap that are too much for it
}

// Where a pool's size comes from, beside the sources of package cgroupmem.
const (
	sourceExplicit = "explicit" // the configuration
	sourcePhysical = "physical" // the machine, where there are no cgroups
	sourceFallback = "fallback" // nowhere
)

// resolve sizes the pool. What the runtime says must be read after Go's memory limit was set.
func (c *Config) resolve(m machine, asynchronous bool, r pressure.Runtime) sizing {
	headroom := c.Guard.HeapHeadroomFraction
	s := sizing{
		machine: m, origin: m.source,
		budget: pressure.Budget(r, m.limit, headroom), critical: pressure.CriticalLive(r, m.limit, headroom),
	}
	switch {
	case c.Memory.PoolSize != nil:
		s.pool, s.origin = *c.Memory.PoolSize, sourceExplicit
		return s
	case m.source == sourceFallback:
		s.pool = fallbackPoolSize
		return s
	case c.Memory.PoolFraction != nil:
		s.fraction = *c.Memory.PoolFraction
	case asynchronous:
		s.fraction = asynchronousFraction
	default:
		s.fraction = synchronousFraction
	}
	s.pool = share(m.limit, s.fraction)
	return s
}

// capacity is what leases may hold: no more than the pool, and no more than Go can.
func (s sizing) capacity() int64 { return min(s.pool, s.budget) }

// maxBatchMemory is the most that a batch may take.
func (s sizing) maxBatchMemory(c *Config) int64 {
	if c.Admission.MaxBatchMemory != nil {
		return *c.Admission.MaxBatchMemory
	}
	return min(defaultMaxBatchMemory, s.budget/2)
}

// check returns why a governor cannot start with this size.
func (s sizing) check(c *Config) error {
	if s.pool < minPoolSize {
		return fmt.Errorf("the memory pool would be %d bytes (%v of the limit of %d from %s) and must be at least %d"+
			" (32MiB): give the process more memory, or set 'memory::pool_size' or a larger 'memory::pool_fraction'",
			s.pool, s.fraction, s.limit, s.source, minPoolSize)
	}
	if most := c.Admission.MaxBatchMemory; most != nil && *most > s.pool {
		return fmt.Errorf("'admission::max_batch_memory' is %d bytes and the memory pool is %d, so such a batch could"+
			" never be admitted: lower the one or raise the other", *most, s.pool)
	}
	return nil
}

// fields are the size as it is logged.
func (s sizing) fields() []zap.Field {
	fields := []zap.Field{zap.Int64("pool", s.pool), zap.String("source", s.origin)}
	if s.fraction > 0 {
		fields = append(fields, zap.String("fraction", strconv.FormatFloat(s.fraction, 'f', max(2, decimals(s.fraction)), 64)))
	}
	return append(fields, zap.Int64("limit", s.limit))
}

// warn logs what an operator should know about this size.
func (s sizing) warn(logger *zap.Logger) {
	pool, limit := zap.Int64("pool", s.pool), zap.Int64("limit", s.limit)
	switch {
	case s.origin == sourceExplicit && s.limit > 0 && s.pool > s.limit:
		logger.Warn("The memory pool is larger than the memory limit; lower 'memory::pool_size'", pool, limit)
	case s.origin == sourceFallback:
		logger.Warn("Nothing says how much memory there is; set 'memory::pool_size'", pool)
	case s.origin != sourceExplicit && !s.chosen:
		logger.Warn("No memory limit is set, so the pool was sized for the whole machine;"+
			" limit the container or set 'memory::pool_size'", pool, limit)
	}
	if s.pool < minPoolSize {
		logger.Warn("The memory pool is smaller than 32MiB; nearly everything will be refused", pool, limit)
	}
}

// decimals is how many decimals a fraction has.
func decimals(fraction float64) int {
	_, digits, _ := strings.Cut(strconv.FormatFloat(fraction, 'f', -1, 64), ".")
	return len(digits)
}

// share returns fraction × n, rounded down, with the fraction in whole parts per million, so that the
// same configuration gives the same size on every machine.
func share(n int64, fraction float64) int64 {
	const million = 1_000_000
	parts := int64(math.Round(fraction * million))
	return n/million*parts + n%million*parts/million
}
