// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

const (
	// slowest is the pace, in bytes per second, below which a body gives way to others that find no room.
	slowest = 16 << 10
	// ahead is by how much a body may fall behind that pace, counted from when it last was on it: the time of a
	// lost packet, twice. It is also all that a fast beginning buys.
	ahead = 500 * time.Millisecond
)

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// pace is at what pace a body comes over HTTP. What is here already has none, which is nil. The methods belong to
// whoever reads the body; others may cut it off, see [bodies].
type pace struct {
	conn    *http.ResponseController
	start   time.Time
	allowed atomic.Int64 // nanoseconds from the start, after which it is slow
	cut     atomic.Bool  // it was slow
}

func newPace(conn *http.ResponseController) *pace {
	p := &pace{conn: conn, start: time.Now()}
	p.allowed.Store(int64(ahead))
	return p
}

// late reports whether the body was slow, and cut off.
func (p *pace) late() bool { return p != nil && p.cut.Load() }

// advance moves on the time by which more must have come: n bytes buy what they would take at the slowest
// pace, but nobody is more than [ahead] ahead.
func (p *pace) advance(n int) {
	if p == nil {
		return
	}
	bought := time.Duration(n) * time.Second / slowest
	p.allowed.Store(min(p.allowed.Load()+int64(bought), int64(time.Since(p.start)+ahead)))
}

// pause stops its time, which is not held against it, until resume is called with what was returned.
func (p *pace) pause() (allowed int64) {
	if p == nil {
		return 0
	}
	return p.allowed.Swap(math.MaxInt64)
}

// resume goes on after so much time.
func (p *pace) resume(allowed int64, after time.Duration) {
	if p != nil {
		p.allowed.Store(allowed + int64(after))
	}
}

// slow reports whether more should have come by now.
func (p *pace) slow(now time.Time) bool { return now.Sub(p.start) > time.Duration(p.allowed.Load()) }

// tooSlow is the refusal of a body that was cut off.
func (b *body) tooSlow(ctx context.Context) error {
	took, allowed := time.Since(b.pace.start), time.Duration(b.pace.allowed.Load())
	return b.door.Refuse(ctx, b.signal, admission.BodyTimeout, took.Milliseconds(), allowed.Milliseconds())
}
