// SPDX-License-Identifier: Apache-2.0

package door

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

// heavyFrom is the size of a request, in bytes of its encoding, from which weighing and decoding it takes a
// place. It is about a millisecond of work; what is smaller is done before it would have queued.
const heavyFrom = 256 << 10

// places are where large requests are weighed and decoded, so that small ones always find a processor. They
// are fewer than the processors by one, but for a single processor, where they only keep order.
//
// A free place goes to the tenant with the fewest requests at work, then to the one that was served the fewest
// bytes, and in the order of arrival within one tenant. Who was idle begins with what the tenant served last
// had before, so that nobody saves up. The price is that a tenant pays for its huge request with a longer wait
// for the next one.
type places struct {
	patience time.Duration // longest wait

	mu      sync.Mutex
	free    int
	arrived int64             // waiters so far
	served  int64             // bytes that whoever got a place last had been served before
	tenants map[string]*queue // those with somebody at work or waiting
}

// queue is one tenant's heavy work.
type queue struct {
	served  int64 // bytes that were given a place
	working int
	waiting []*waiter // oldest first
}

// waiter is one request that waits for a place.
type waiter struct {
	bytes int64
	turn  int64         // in the order of arrival
	ready chan struct{} // closed when it has a place
}

func newPlaces(patience time.Duration) *places {
	return &places{
		patience: patience,
		free:     max(1, runtime.GOMAXPROCS(0)-1),
		tenants:  map[string]*queue{},
	}
}

// do runs work on a request of that many bytes of a tenant: at once if it is small, else in a place. It is not
// ok, and work is not run, if no place was free within the patience of all or before ctx ended; waited says
// after how long. Work must not wait for anything. Safe for concurrent use.
func (p *places) do(ctx context.Context, tenant string, bytes int64, work func()) (waited time.Duration, ok bool) {
	if bytes <= heavyFrom {
		work()
		return 0, true
	}
	if waited, ok = p.take(ctx, tenant, bytes); !ok {
		return waited, false
	}
	defer p.give(tenant)
	work()
	return waited, true
}

// refusal is what a request is told that got no place, with what was observed and what is allowed.
func (p *places) refusal(ctx context.Context, waited time.Duration) (reason admission.Reason, observed, limit int64) {
	if ctx.Err() != nil {
		return admission.Canceled, 0, 0
	}
	return admission.QueueTimeout, waited.Milliseconds(), p.patience.Milliseconds()
}

// take waits for a place.
func (p *places) take(ctx context.Context, tenant string, bytes int64) (waited time.Duration, ok bool) {
	p.mu.Lock()
	q := p.tenants[tenant]
	if q == nil {
		q = &queue{served: p.served}
		p.tenants[tenant] = q
	}
	if p.free > 0 { // then nobody waits
		p.free--
		p.serve(q, bytes)
		p.mu.Unlock()
		return 0, true
	}
	p.arrived++
	w := &waiter{bytes: bytes, turn: p.arrived, ready: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	p.mu.Unlock()

	start := time.Now()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case <-w.ready:
		return time.Since(start), true
	case <-ctx.Done():
	case <-timer.C:
	}
	return time.Since(start), p.abandon(tenant, q, w)
}

// abandon takes w out of line, unless it was given a place meanwhile: that is then its own, and true returned.
func (p *places) abandon(tenant string, q *queue, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			p.forget(tenant, q)
			return false
		}
	}
	return true
}

// give returns a place of a tenant and hands it to whoever is next.
func (p *places) give(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.tenants[tenant]
	q.working--
	var next *queue
	for _, q := range p.tenants {
		if len(q.waiting) > 0 && (next == nil || q.before(next)) {
			next = q
		}
	}
	if next == nil {
		p.free++
	} else {
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		p.serve(next, w.bytes)
		close(w.ready)
	}
	p.forget(tenant, q)
}

// before reports whether q goes before other; both have somebody waiting.
func (q *queue) before(other *queue) bool {
	return cmp.Or(
		cmp.Compare(q.working, other.working),
		cmp.Compare(q.served, other.served),
		cmp.Compare(q.waiting[0].turn, other.waiting[0].turn),
	) < 0
}

// serve counts a place as q's.
func (p *places) serve(q *queue, bytes int64) {
	p.served = max(p.served, q.served)
	q.served += bytes
	q.working++
}

// forget drops a tenant that has nothing at work and nothing waiting.
func (p *places) forget(tenant string, q *queue) {
	if q.working == 0 && len(q.waiting) == 0 {
		delete(p.tenants, tenant)
	}
}
