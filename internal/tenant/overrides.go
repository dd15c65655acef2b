// SPDX-License-Identifier: Apache-2.0

package tenant

import "time"

// SetOverrides puts every tenant under these overrides, those in use too: a bucket keeps its tokens as far
// as they fit, a breaker that is open stays so, and what batches hold is nobody's business here. Keys are
// names as [Identity] makes them; those of [DefaultName] and [OverflowName] are for the registry's own two.
func (r *Registry[A]) SetOverrides(overrides map[string]Override) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.newPolicy(overrides)
	r.policy.Store(p) // who comes in from now on is under it
	now := int64(time.Since(r.epoch))
	for _, t := range r.own {
		r.adopt(t, p, now)
	}
	for i := range r.shards {
		r.adoptAll(&r.shards[i], p, now)
	}
}

func (r *Registry[A]) newPolicy(overrides map[string]Override) *policy {
	d := r.settings.Defaults
	p := &policy{defaults: newTerms(d, false), overrides: make(map[string]*terms, len(overrides))}
	for name, o := range overrides {
		p.overrides[bounded(name)] = newTerms(o.Over(d), true)
	}
	p.room = r.settings.MaxTracked - int64(len(p.overrides))
	return p
}

func (r *Registry[A]) adoptAll(s *shard[A], p *policy, now int64) {
	s.Lock()
	defer s.Unlock()
	for _, t := range s.ring {
		r.adopt(t, p, now)
	}
}

// adopt puts t under p. It is called with the lock of its shard held, unless it is one of the own two.
func (r *Registry[A]) adopt(t *Tenant[A], p *policy, now int64) {
	before, after := t.terms.Load(), p.of(t.name)
	if before.Ceilings == after.Ceilings && before.configured == after.configured {
		return
	}
	if before.configured != after.configured && !t.reserved {
		r.count(before, t.trusted, -1)
		r.recount(after, t.trusted)
	}
	t.adopt(after, now)
	if r.settings.Changed != nil {
		r.settings.Changed(t)
	}
}

// recount counts a tenant that is there, whether or not there is a place for it.
func (r *Registry[A]) recount(c *terms, trusted bool) {
	r.tracked.Add(1)
	if !c.configured {
		r.invented.Add(1)
		if !trusted {
			r.untrusted.Add(1)
		}
	}
}
