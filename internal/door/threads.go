// SPDX-License-Identifier: Apache-2.0

package door

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// threadsFrom is the work, counted like [heavyFrom], that takes about as long as Go lets a goroutine run.
	threadsFrom = 4 * heavyFrom
	// fewest is on how many threads Go runs code at least while there is so much work.
	fewest = 2
	// threadsHold is for how long it does so after the last of it. To change that stops the process for some 40 µs.
	threadsHold = 10 * time.Second
)

// threads see to it that the kernel shares a lone processor among threads while there is work that takes long, and not
// Go among goroutines: Go lets one run for 10 ms before it is another's turn, at each of the many turns that a request
// takes. Beside the decoding of 43 MB bombs on one processor a request of 162 kB took 85 ms with one thread and 9 to
// 12 with two. Without such work one thread has the better throughput, by a tenth. Go itself runs two where a cgroup
// limits it to the time of less. The zero value is ready for use, which is safe for concurrent use.
type threads struct {
	mu    sync.Mutex
	lower *time.Timer // while there are more than Go would have
}

// want has Go run on enough threads for a while where there is so much work that it takes long, unless the operator has
// set how many by GOMAXPROCS.
func (t *threads) want(work int64) {
	if work <= threadsFrom {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lower != nil {
		t.lower.Reset(threadsHold)
		return
	}
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < fewest {
		runtime.GOMAXPROCS(fewest)
		t.lower = time.AfterFunc(threadsHold, t.restore)
	}
}

// restore leaves it to Go again, unless somebody else has set it meanwhile.
func (t *threads) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if runtime.GOMAXPROCS(0) == fewest {
		runtime.SetDefaultGOMAXPROCS()
	}
	t.lower = nil
}
