// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"errors"

	"github.com/otel-governor/otel-governor/internal/cgroupmem"
)

// readMachine asks the kernel.
func readMachine() (machine, error) { return readCgroup(cgroupmem.New("/")) }

// readCgroup returns the limit that r finds. That nothing says how much memory there is, is no error.
func readCgroup(r *cgroupmem.Reader) (machine, error) {
	l, err := r.Limit()
	if errors.Is(err, cgroupmem.ErrUnknown) {
		return machine{source: sourceFallback}, nil
	}
	if err != nil {
		return machine{}, err
	}
	return machine{limit: l.Bytes, source: string(l.Source), chosen: l.Limited}, nil
}
