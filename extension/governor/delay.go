// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

const (
	// maxDelay bounds the doubling. SDKs give up after 10 s in all, so a longer delay is a loss.
	maxDelay = 4 * time.Second
	// delaySpread is how far delays are spread upward. It must be two whole seconds at least: over HTTP
	// a client sees whole seconds only, and those refused together must not come back together.
	delaySpread = 2 * time.Second
)

// maxComputedDelay bounds the delays that follow from what is missing.
const maxComputedDelay = 30 * time.Second

// computed returns the delay for a client that can be served once wait has passed, and no sooner: also over
// HTTP, where it is cut down to whole seconds.
func computed(wait time.Duration) time.Duration {
	whole := (wait + time.Second - 1).Truncate(time.Second)
	return min(max(whole, admission.MinRetryAfter)+rand.N(delaySpread), maxComputedDelay)
}

// delay tells refused clients of one tenant when to come back: later while it keeps being refused, but
// no later for being refused more often within one delay. The zero value is ready for use.
type delay struct {
	mu    sync.Mutex
	base  time.Duration
	since time.Time // when base came into force
}

// next returns the delay for a refusal at this time.
func (d *delay) next(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch age := now.Sub(d.since); {
	case d.base == 0 || age > 2*d.base+delaySpread: // the clients have been back and were not refused
		d.base, d.since = admission.MinRetryAfter, now
	case age >= d.base:
		d.base, d.since = min(2*d.base, maxDelay), now
	}
	return d.base + rand.N(delaySpread)
}
