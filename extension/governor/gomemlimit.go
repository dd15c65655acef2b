// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"os"
	"runtime/debug"
)

// softLimit is Go's memory limit while a governor runs. The zero value leaves it alone.
type softLimit struct {
	fraction float64
	before   int64
	set      bool
}

// follow makes Go's limit a share of the process's, unless the operator has set it through GOMEMLIMIT or
// the process's is unknown.
func (l *softLimit) follow(limit int64) {
	if l.fraction == 0 || limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetMemoryLimit(share(limit, l.fraction))
	if !l.set {
		l.before, l.set = before, true
	}
}

// restore puts back what was in force before the first follow.
func (l *softLimit) restore() {
	if l.set {
		debug.SetMemoryLimit(l.before)
		l.set = false
	}
}
