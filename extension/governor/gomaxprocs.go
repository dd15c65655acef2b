// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"os"
	"runtime"
)

// fewest is how many threads Go runs code on at least while a governor runs.
const fewest = 2

// threads sees to it that the kernel shares a lone processor among threads, and not Go among goroutines: Go lets one
// run for 10 ms before it is another's turn, at each of the many turns that a request takes. Beside the decoding of
// 43 MB bombs on one processor a request of 162 kB took 86 ms with one thread and 9 with two. Go itself runs two where
// it is the time of processors that is limited and not their number.
type threads struct{ raised bool }

// follow has Go run on enough threads, unless the operator has set how many by GOMAXPROCS. What Go would choose may
// change while it runs.
func (t *threads) follow() {
	if t.raised {
		t.restore()
	}
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < fewest {
		runtime.GOMAXPROCS(fewest)
		t.raised = true
	}
}

// restore leaves it to Go again, unless somebody else has set it meanwhile.
func (t *threads) restore() {
	if t.raised && runtime.GOMAXPROCS(0) == fewest {
		runtime.SetDefaultGOMAXPROCS()
	}
	t.raised = false
}
