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
}

func (a *arriving) add(c *call, ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[*call]context.Context{}
	}
	a.calls[c] = ctx
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
