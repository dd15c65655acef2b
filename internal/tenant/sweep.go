// SPDX-License-Identifier: Apache-2.0

package tenant

import "time"

// sweepBatch is how many tenants one Sweep looks at: some 50 µs.
const sweepBatch = 1024

// Sweep forgets tenants that have been idle for long enough and would gain nothing by it, and returns how
// many. One call looks at a bounded number and the next one goes on from there. A tenant counts as idle
// from the first call that finds it so, and is therefore never forgotten early.
func (r *Registry[A]) Sweep(now time.Time) (forgotten int) {
	at := int64(now.Sub(r.epoch))
	r.mu.Lock()
	defer r.mu.Unlock()
	left := sweepBatch
	for range r.shards {
		s := &r.shards[r.mu.shard]
		if r.sweepShard(s, at, &left, &forgotten); left == 0 {
			break
		}
		r.mu.shard, r.mu.place = (r.mu.shard+1)%len(r.shards), 0
	}
	return forgotten
}

// sweepShard goes on in s until its end, or until nothing is left of the batch.
func (r *Registry[A]) sweepShard(s *shard[A], now int64, left, forgotten *int) {
	s.Lock()
	defer s.Unlock()
	for ; r.mu.place < len(s.ring); *left-- {
		if *left == 0 {
			return
		}
		if t := s.ring[r.mu.place]; r.over(t, now) {
			r.forget(s, t)
			*forgotten++
		} else {
			r.mu.place++
		}
	}
}

// over reports whether t can be forgotten. It is called with the lock of its shard held, so that nobody
// can pin it who has not already.
func (r *Registry[A]) over(t *Tenant[A], now int64) bool {
	if t.pins.Load() > 0 {
		return false
	}
	since := t.idle.Load()
	if since == inUse {
		since = now
		t.idle.Store(now)
	}
	return now-since >= int64(r.settings.IdleTimeout) && t.forgettable(now)
}

// forget removes t from s, whose lock is held.
func (r *Registry[A]) forget(s *shard[A], t *Tenant[A]) {
	delete(s.byName, t.name)
	end := len(s.ring) - 1
	s.ring[t.place] = s.ring[end]
	s.ring[t.place].place = t.place
	s.ring[end] = nil
	s.ring = s.ring[:end]
	r.count(t.terms.Load(), t.trusted, -1)
}
