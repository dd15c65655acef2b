// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"hash/maphash"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Settings are what a registry is made with. They are set by code that has validated them.
type Settings[A any] struct {
	// MaxTracked is how many tenants there are at most besides the registry's own two. Those with an
	// override always find a place: one is kept for each, whether it is there or not.
	MaxTracked int64
	// MaxUntrusted is how many of them may be [Tenant.Untrusted], so that names which anybody can invent
	// leave places for names which nobody can; 0: all of them.
	MaxUntrusted int64
	// IdleTimeout is for how long a tenant must have been unused before it is forgotten.
	IdleTimeout time.Duration
	// Defaults are the ceilings of every tenant without an override, the registry's own two included.
	Defaults Ceilings

	// Init makes the Value of a new tenant, and Changed follows when its ceilings, or whether it is
	// untrusted, have changed. They are called one at a time for each tenant, before anybody else sees the
	// tenant or while others use it, with a lock held: they must be short and not call the registry. Both
	// may be nil.
	Init, Changed func(*Tenant[A])
}

// Registry holds the tenants. All methods are safe for concurrent use.
type Registry[A any] struct {
	settings Settings[A]
	epoch    time.Time
	seed     maphash.Seed // secret, so that nobody can choose names that share a shard
	own      [2]*Tenant[A]
	policy   atomic.Pointer[policy]

	tracked   atomic.Int64 // all but the own two
	invented  atomic.Int64 // of them, without an override
	untrusted atomic.Int64 // of these, from an untrusted source

	mu struct { // for SetOverrides and Sweep, before any shard's lock
		sync.Mutex
		shard, place int // where Sweep goes on
	}
	shards [2 * shards]shard[A] // of untrusted, then of trusted names
}

const shards = 64

// shard is a part of the tenants, those of either kind by the hash of their names.
type shard[A any] struct {
	sync.Mutex
	byName map[string]*Tenant[A]
	ring   []*Tenant[A] // the same ones without the registry's own, to be swept piece by piece
	_      [24]byte     // a cache line each
}

// policy is what the overrides amount to. It never changes.
type policy struct {
	defaults  *terms
	overrides map[string]*terms
	room      int64 // for tenants without an override
}

func (p *policy) of(name string) *terms {
	if t := p.overrides[name]; t != nil {
		return t
	}
	return p.defaults
}

// New returns a registry without overrides.
func New[A any](s Settings[A]) *Registry[A] {
	r := &Registry[A]{settings: s, epoch: time.Now(), seed: maphash.MakeSeed()}
	r.policy.Store(r.newPolicy(nil))
	for i := range r.shards {
		r.shards[i].byName = map[string]*Tenant[A]{}
	}
	for i, name := range [...]string{DefaultName, OverflowName} {
		t := r.newTenant(name, name == DefaultName, r.policy.Load().defaults)
		t.reserved = true
		r.own[i] = t
		for _, trusted := range [...]bool{false, true} {
			r.shard(name, trusted).byName[name] = t
			if name == DefaultName {
				r.shard("", trusted).byName[""] = t
			}
		}
	}
	return r
}

// Default returns the tenant of those who say nothing about themselves. It need not be pinned.
func (r *Registry[A]) Default() *Tenant[A] { return r.own[0] }

// Overflow returns the tenant of those whose names found no place. It need not be pinned.
func (r *Registry[A]) Overflow() *Tenant[A] { return r.own[1] }

// Get returns the tenant of this name, as [Identity] made it, and pins it: the caller must call
// [Tenant.Unpin] once. The empty name is the default tenant's. Trusted says whether somebody else than the
// client vouches for the name; a name from a trusted and the same from an untrusted source are two
// tenants, with the same ceilings.
func (r *Registry[A]) Get(name string, trusted bool) *Tenant[A] {
	if len(name) > MaxName { // not from Identity
		name = bounded(name)
	}
	s := r.shard(name, trusted)
	s.Lock()
	t := s.byName[name]
	if t == nil {
		s.Unlock()
		return r.enter(s, name, trusted)
	}
	t.Pin()
	s.Unlock()
	t.touch()
	return t
}

func (r *Registry[A]) shard(name string, trusted bool) *shard[A] {
	i := maphash.String(r.seed, name) % shards
	if trusted {
		i += shards
	}
	return &r.shards[i]
}

// enter returns a tenant that was not there a moment ago.
func (r *Registry[A]) enter(s *shard[A], name string, trusted bool) *Tenant[A] {
	if r.full(r.policy.Load().of(name), trusted) { // most often so when somebody invents names
		return r.own[1]
	}
	s.Lock()
	defer s.Unlock()
	if t := s.byName[name]; t != nil {
		t.Pin()
		t.touch()
		return t
	}
	terms := r.policy.Load().of(name) // under the lock: SetOverrides comes by later, or it was here
	if !r.count(terms, trusted, 1) {
		return r.own[1]
	}
	t := r.newTenant(strings.Clone(name), trusted, terms) // a part of a request would keep all of it
	t.Pin()
	t.touch()
	t.place = len(s.ring)
	s.ring = append(s.ring, t)
	s.byName[t.name] = t
	return t
}

func (r *Registry[A]) newTenant(name string, trusted bool, c *terms) *Tenant[A] {
	t := &Tenant[A]{name: name, shown: Show(name), trusted: trusted, epoch: r.epoch}
	t.buckets = newBuckets(c.rates, int64(time.Since(r.epoch)))
	t.breaker.epoch = r.epoch
	t.terms.Store(c)
	if r.settings.Init != nil {
		r.settings.Init(t)
	}
	return t
}

// full reports whether there is no place for one more tenant under these terms.
func (r *Registry[A]) full(c *terms, trusted bool) bool {
	return !c.configured && (r.invented.Load() >= r.policy.Load().room ||
		!trusted && r.untrusted.Load() >= r.maxUntrusted())
}

func (r *Registry[A]) maxUntrusted() int64 {
	if m := r.settings.MaxUntrusted; m > 0 {
		return m
	}
	return r.settings.MaxTracked
}

// count counts n tenants under these terms, unless it is one more and there is no place.
func (r *Registry[A]) count(c *terms, trusted bool, n int64) bool {
	if !c.configured {
		if r.invented.Add(n) > r.policy.Load().room && n > 0 {
			r.invented.Add(-n)
			return false
		}
		if !trusted && r.untrusted.Add(n) > r.maxUntrusted() && n > 0 {
			r.untrusted.Add(-n)
			r.invented.Add(-n)
			return false
		}
	}
	r.tracked.Add(n)
	return true
}

// Len returns how many tenants are tracked, besides the registry's own two. It is more than MaxTracked only
// where there are more overrides than that, where names with an override come from both kinds of source,
// or until the next sweeps after overrides were taken away.
func (r *Registry[A]) Len() int64 { return r.tracked.Load() }

// All yields every tenant, the registry's own two first. They are not pinned: one may be forgotten while
// it is looked at, which harms nobody who only reads.
func (r *Registry[A]) All() iter.Seq[*Tenant[A]] {
	return func(yield func(*Tenant[A]) bool) {
		for _, t := range r.own {
			if !yield(t) {
				return
			}
		}
		var some []*Tenant[A]
		for i := range r.shards {
			s := &r.shards[i]
			s.Lock()
			some = append(some[:0], s.ring...)
			s.Unlock()
			for _, t := range some {
				if !yield(t) {
					return
				}
			}
		}
	}
}
