// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"sync"

	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/internal/pressure"
)

// remains are what an ended lease left alive, until it is gone.
type remains struct {
	books  *pressure.Books
	once   sync.Once
	owner  remain
	others []remain
}

// remain is what of it is one tenant's, which stays pinned as long.
type remain struct {
	tenant *member
	left   pressure.Left
}

// ReleaseLater implements admission.Lease. Where nothing keeps data after it has answered, all of a batch is garbage
// once its lease ends, and there is nothing to follow.
func (l *lease) ReleaseLater(outcome error) (gone func()) {
	if !l.ceilings.Outlived() {
		l.Release(outcome)
		return func() {}
	}
	r, left := l.leave()
	if !l.end(outcome, left...) {
		for _, s := range left {
			l.ceilings.governor.pool.Carry(s.Account, s.Bytes)
		}
		r.gone()
	}
	return r.gone
}

// leave moves what l covers to the books of those whose it is, and returns what they carry of it. Of what
// belongs to a batch that has ended, nothing is known to be anybody's.
func (l *lease) leave() (*remains, []pool.Share) {
	root, g := l.whole(), l.ceilings.governor
	r := &remains{books: g.guard.books}
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.mu.ended {
		return r, nil
	}
	scale := float64(l.memory) / float64(max(1, root.memory)) // a part may be larger or smaller than the whole
	r.others = make([]remain, len(root.mu.claims.others))
	left := make([]pool.Share, 0, 1+len(r.others))
	for i := range root.mu.claims.len() {
		c, to := root.mu.claims.at(i), &r.owner
		if i > 0 {
			to = &r.others[i-1]
		}
		c.tenant.Pin()
		to.tenant = c.tenant
		if carried := r.books.End(&to.left, &c.tenant.Value.carrier, int64(scale*float64(c.memory))); carried != 0 {
			left = append(left, pool.Share{Account: &c.tenant.Value.pool, Bytes: carried})
		}
	}
	return r, left
}

// gone takes what is no more off the books.
func (r *remains) gone() {
	r.once.Do(func() {
		r.owner.gone(r.books)
		for i := range r.others {
			r.others[i].gone(r.books)
		}
	})
}

func (r *remain) gone(books *pressure.Books) {
	if r.tenant == nil {
		return
	}
	books.Gone(&r.left)
	r.tenant.Unpin()
}
