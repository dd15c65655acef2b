// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"maps"
	"sync"

	"github.com/otel-governor/otel-governor/admission"
)

// arriving are the calls that the tap let in and whose message is not whole yet. It is safe for concurrent use.
type arriving struct {
	mu    sync.Mutex
	calls map[*call]context.Context
	added int64
}

func (a *arriving) add(c *call, ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[*call]context.Context{}
	}
	a.calls[c] = ctx
	a.added++
	c.order = a.added
}

func (a *arriving) remove(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.calls, c)
}

// Shed ends the gRPC calls whose message is not whole yet and which the governor refuses by the state of things
// alone. It is for the moment in which pressure becomes critical: nothing new is let in from then on, but what
// is half here could still grow, unseen where it comes in small frames. Their clients see a canceled call, which
// OTLP has them retry. Without a tap it does nothing.
func (d *Door) Shed() {
	d.arriving.mu.Lock()
	calls := maps.Clone(d.arriving.calls)
	d.arriving.mu.Unlock()
	for c, ctx := range calls {
		if err := d.Governor.Check(ctx, admission.Request{}); err != nil {
			c.cancel(err)
		}
	}
}

// floodedFrom is at how many times of what may be on its way in too much is: calls that were let in bring far more than
// messages of their address lately were.
const floodedFrom = 4

// stem ends the calls whose message is not whole yet, of addresses that have more than their part, but for the oldest of
// each, since any size gets through alone, and a few of each known tenant. It is for the moment in which too much is on its way in: who began to send while that was little
// may go on for as much as a message may be. Their clients see a canceled call, which OTLP has them retry, and that
// comes in turn then. Without a tap it does nothing.
func (d *Door) stem() {
	if !d.stemming.TryLock() {
		return
	}
	defer d.stemming.Unlock()
	d.arriving.mu.Lock()
	calls := maps.Clone(d.arriving.calls)
	d.arriving.mu.Unlock()
	type part struct {
		observed, limit int64
		over            bool
		oldest          *call
	}
	parts, few := map[*peer]part{}, map[string]int{}
	for c := range calls { // before any has ended
		p, seen := parts[c.peer]
		if !seen {
			p.observed, p.limit, p.over = c.peer.overOwn(0)
		}
		if !seen || c.order < p.oldest.order {
			p.oldest = c
		}
		parts[c.peer] = p
	}
	for c, ctx := range calls {
		p := parts[c.peer]
		if !p.over || c == p.oldest || ctx.Err() != nil {
			continue
		}
		ctx = d.heard(ctx, c)
		if tenant := d.known(ctx); tenant != "" {
			if few[tenant]++; few[tenant] <= spareCalls {
				continue
			}
		}
		if err := d.refuse(ctx, c.signal, admission.MemoryContended, p.observed, p.limit); err != nil {
			c.peer.surprise()
			c.cancel(err)
		}
	}
}
