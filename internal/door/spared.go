// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync"
)

// spareCalls is how many calls of one known tenant come in although too much is on its way in already, and as many
// more as come to a quarter of what may be, if the messages of its address are as large as they lately were; but those
// of all together come to no more than all of it. Tenants behind one proxy share its address, so that what one of them
// sends would keep the others out: gRPC does not tell the size of a message before it comes, and sixteen of 4 MB may
// come at once.
const spareCalls = 2

// spared are the calls that were let in for their tenant's sake. The price is that known tenants bring in twice as
// much as there should be, and two messages each beyond that. It is safe for concurrent use.
type spared struct {
	mu    sync.Mutex
	calls map[string]int // by tenant
	bytes int64          // that they are expected to bring
}

// known returns the name of the tenant that ctx speaks for if it is one that nobody invented.
func (d *Door) known(ctx context.Context) string {
	if d.Known == nil {
		return ""
	}
	return d.Known(ctx)
}

// take lets c in for the sake of a tenant, unless there is none or it has as many here as may be. C is expected to
// bring so many bytes, and so many may be on their way in.
func (s *spared) take(c *call, tenant string, bytes, limit int64) bool {
	if tenant == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := int64(s.calls[tenant])
	if calls >= spareCalls && ((calls+1)*bytes > limit/4 || s.bytes+bytes > limit) {
		return false
	}
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[tenant]++
	s.bytes += bytes
	c.spared, c.expected = tenant, bytes
	return true
}

// give takes c off, if it was let in so.
func (s *spared) give(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.spared == "" {
		return
	}
	s.bytes -= c.expected
	if s.calls[c.spared]--; s.calls[c.spared] == 0 {
		delete(s.calls, c.spared)
	}
	c.spared = ""
}
