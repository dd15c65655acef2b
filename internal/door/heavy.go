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
// done, and in the order of arrival within one tenant. Names that anybody can invent count as one tenant all together
// and take its turns by the same rule among themselves: who invents more of them gets no more, and one that is honest
// does not wait behind all of another's. Who was idle begins with what the tenant served last had before, so that
// nobody saves up. The price is that a tenant pays for its huge request with a longer wait for the next one.
type places struct {
	from     int64         // work from which a place is taken
	patience time.Duration // longest wait

	mu       sync.Mutex
	free     int
	arrived  int64            // waiters so far
	last     int64            // work that whose turn it was last had been served before
	queues   map[party]*queue // those with somebody at work or waiting
	invented share            // of all parties that are not known
}

// party is a tenant. One that is known and one that invents its name are not the same.
type party struct {
	name  string
	known bool // see [Settings.Known]
}

// share is what one tenant has of the places, or all together whose names anybody can invent.
type share struct {
	queues  int   // with somebody at work or waiting
	served  int64 // work that was given a place
	working int
	last    int64 // work that whose turn among them it was last had been served before
}

// queue is one party's heavy work.
type queue struct {
	share   *share
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
		queues:   map[party]*queue{},
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
	of := d.party(ctx)
	if waited, ok := in.take(ctx, of, work); !ok {
		reason, observed, limit := in.refusal(ctx, waited)
		return nil, refuse(ctx, reason, observed, limit)
	}
	return sync.OnceFunc(func() { in.give(of) }), nil
}

// party returns whom ctx speaks for.
func (d *Door) party(ctx context.Context) party {
	if name := d.known(ctx); name != "" {
		return party{name, true}
	}
	name, _ := d.Governor.Identify(ctx)
	return party{name, false}
}

// refusal is what a request is told that got no place, with what was observed and what is allowed.
func (p *places) refusal(ctx context.Context, waited time.Duration) (reason admission.Reason, observed, limit int64) {
	if ctx.Err() != nil {
		return admission.Canceled, 0, 0
	}
	return admission.QueueTimeout, waited.Milliseconds(), p.patience.Milliseconds()
}

// take waits for a place for so much work on a request of a party, which must be given back. It is not ok if none was
// free within the patience of all or before ctx ended; waited says after how long. Safe for concurrent use.
func (p *places) take(ctx context.Context, of party, work int64) (waited time.Duration, ok bool) {
	p.mu.Lock()
	q := p.queue(of)
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
	return time.Since(start), p.abandon(of, q, w)
}

// queue returns a party's own.
func (p *places) queue(of party) *queue {
	if q := p.queues[of]; q != nil {
		return q
	}
	s := &p.invented
	if of.known {
		s = &share{}
	}
	if s.queues++; s.queues == 1 { // it was idle
		s.served = max(s.served, p.last)
	}
	q := &queue{share: s, served: s.last}
	p.queues[of] = q
	return q
}

// abandon takes w out of line, unless it was given a place meanwhile: that is then its own, and true returned.
func (p *places) abandon(of party, q *queue, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			p.forget(of, q)
			return false
		}
	}
	return true
}

// give returns a place of a party and hands it to whoever is next.
func (p *places) give(of party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[of]
	q.working--
	q.share.working--
	var next *queue
	for _, q := range p.queues {
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
	p.forget(of, q)
}

// before reports whether q goes before other; both have somebody waiting.
func (q *queue) before(other *queue) bool {
	return cmp.Or(
		cmp.Compare(q.share.working, other.share.working),
		cmp.Compare(q.share.served, other.share.served),
		cmp.Compare(q.working, other.working),
		cmp.Compare(q.served, other.served),
		cmp.Compare(q.waiting[0].turn, other.waiting[0].turn),
	) < 0
}

// serve counts a place as q's.
func (p *places) serve(q *queue, work int64) {
	s := q.share
	p.last, s.last = max(p.last, s.served), max(s.last, q.served)
	s.served += work
	q.served += work
	s.working++
	q.working++
}

// forget drops a party that has nothing at work and nothing waiting.
func (p *places) forget(of party, q *queue) {
	if q.working == 0 && len(q.waiting) == 0 {
		delete(p.queues, of)
		q.share.queues--
	}
}
