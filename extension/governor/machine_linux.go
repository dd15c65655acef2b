// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"

	"github.com/otel-governor/otel-governor/internal/cgroupmem"
)

// cgroup is the kernel that has them.
type cgroup struct {
	reader  *cgroupmem.Reader
	found   cgroupmem.Limit
	sampler *cgroupmem.Sampler
}

func newKernel() kernel { return &cgroup{reader: cgroupmem.New("/")} }

// limit returns what the kernel allows. That nothing says how much memory there is, is no error.
func (c *cgroup) limit() (machine, error) {
	l, err := c.reader.Limit()
	if errors.Is(err, cgroupmem.ErrUnknown) {
		l, err = cgroupmem.Limit{Source: sourceFallback}, nil
	}
	if err != nil {
		return machine{}, err
	}
	if c.sampler == nil || l.Dir != c.found.Dir || l.Source != c.found.Source {
		c.close()
		c.found, c.sampler = l, c.reader.Sampler(l)
	}
	return machine{limit: l.Bytes, source: string(l.Source), chosen: l.Limited}, nil
}

func (c *cgroup) sample() cgroupmem.Sample { return c.sampler.Sample() }

func (c *cgroup) close() {
	if c.sampler != nil {
		_ = c.sampler.Close() // what cannot be closed was only read
	}
}
