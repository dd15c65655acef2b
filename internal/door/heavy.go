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

const (
	// heavyFrom is the work on a request from which it takes a place, in bytes of encoding that usual batches would
	// have for as much. It is about two milliseconds; what is less is done before it would have queued.
	heavyFrom = 512 << 10
	// heavyHold is how long a place is kept at most for so much where the end of the work is not heard of: ten times that.
	heavyHold = 20 * time.Millisecond
	// heapRatio is how much heap usual batches take for a byte of encoding. Decoding what is heavier than its
	// encoding says takes as much longer.
	heapRatio = 4
	// walkShare is the part of that which weighing protobuf is at its worst, of many small fields: one in so many bytes.
	walkShare = 2
	// jsonTimes is how much more than that of decoding weighing JSON is at its worst, of many empty structs.
	jsonTimes = 3
	// lightFrom is the work from which JSON is weighed in a place of the light: a millisecond for each of a flood of
	// bodies comes to a long wait for everybody else.
	lightFrom = heavyFrom / 8
)

// places are where large requests are weighed and decoded, so that small ones always find a processor. They
// are fewer than the processors by one, but for a single processor, where they only keep order.
//
// A free place goes to the tenant with the fewest requests at work, then to the one for which the least work was
// done, and in the order of arrival within one tenant. Who was idle begins with what the tenant served last
// had before, so that nobody saves up. The price is that a tenant pays for its huge request with a longer wait
// for the next one.
type places struct {
	from     int64         // work from which a place is taken
	patience time.Duration // longest wait

	mu      sync.Mutex
	free    int
	arrived int64             // waiters so far
	served  int64             // work that whoever got a place last had been served before
	tenants map[string]*queue // those with somebody at work or waiting
}

// queue is one tenant's heavy work.
type queue struct {
	served  int64 // work that was given a place
	working int
	waiting []*waiter // oldest first
}

// waiter is one request that waits for a place.
type waiter struct {
	work  int64
	turn  int64         // in the order of arrival
	ready chan struct{} // closed when it has a place
}

func newPlaces(from int64, patience time.Duration) *places {
	return &places{
		from:     from,
		patience: patience,
		free:     max(1, runtime.GOMAXPROCS(0)-1),
		tenants:  map[string]*queue{},
	}
}

// work does so much of it for the tenant that ctx speaks for: at once if it is little, else in one of the places. Where
// there is none for it, it does nothing and returns the refusal that refuse makes. What is done must not wait for
// anything.
func (d *Door) work(ctx context.Context, in *places, work int64, done func(), refuse refusing) error {
	leave, err := d.enter(ctx, in, work, refuse)
	if err != nil {
		return err
	}
	defer leave()
	done()
	return nil
}

// refusing makes the answer for whom there was no place.
type refusing = func(ctx context.Context, reason admission.Reason, observed, limit int64) *admission.Error

// enter is for work that is done elsewhere: it lasts until leave is called for the first time.
func (d *Door) enter(ctx context.Context, in *places, work int64, refuse refusing) (leave func(), err error) {
	d.threads.want(work)
	if work <= in.from {
		return func() {}, nil
	}
	tenant, _ := d.Governor.Identify(ctx)
	if waited, ok := in.take(ctx, tenant, work); !ok {
		reason, observed, limit := in.refusal(ctx, waited)
		return nil, refuse(ctx, reason, observed, limit)
	}
	return sync.OnceFunc(func() { in.give(tenant) }), nil
}

// refusal is what a request is told that got no place, with what was observed and what is allowed.
func (p *places) refusal(ctx context.Context, waited time.Duration) (reason admission.Reason, observed, limit int64) {
	if ctx.Err() != nil {
		return admission.Canceled, 0, 0
	}
	return admission.QueueTimeout, waited.Milliseconds(), p.patience.Milliseconds()
}

// take waits for a place for so much work on a request of a tenant, which must be given back. It is not ok if none was
// free within the patience of all or before ctx ended; waited says after how long. Safe for concurrent use.
func (p *places) take(ctx context.Context, tenant string, work int64) (waited time.Duration, ok bool) {
	p.mu.Lock()
	q := p.tenants[tenant]
	if q == nil {
		q = &queue{served: p.served}
		p.tenants[tenant] = q
	}
	if p.free > 0 { // then nobody waits
		p.free--
		p.serve(q, work)
		p.mu.Unlock()
		return 0, true
	}
	p.arrived++
	w := &waiter{work: work, turn: p.arrived, ready: make(chan struct{})}
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
		p.serve(next, w.work)
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
func (p *places) serve(q *queue, work int64) {
	p.served = max(p.served, q.served)
	q.served += work
	q.working++
}

// forget drops a tenant that has nothing at work and nothing waiting.
func (p *places) forget(tenant string, q *queue) {
	if q.working == 0 && len(q.waiting) == 0 {
		delete(p.tenants, tenant)
	}
}
