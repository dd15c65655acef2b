// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/tenant"
)

const (
	// summaryInterval is how often refusals are logged. A line per refusal would make the log the next
	// thing to run out under a flood.
	summaryInterval = 10 * time.Second
	// summaryTenants is how many tenants are logged by name each time: those with the most refusals. The
	// Collector's own log drops what is said more than ten times in ten seconds.
	summaryTenants = 8
	// summaryHolders is how many of the largest holders are named beside them.
	summaryHolders = 5
)

// refusals counts what was refused to a tenant since the last summary. The zero value is ready for use.
type refusals struct {
	mu     sync.Mutex
	total  int64
	counts map[admission.Reason]int64
}

func (r *refusals) add(reason admission.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[admission.Reason]int64{}
	}
	r.total++
	r.counts[reason]++
}

// summary is what was refused to one tenant.
type summary struct {
	tenant string
	total  int64
	counts map[admission.Reason]int64
}

// flush returns the counts and starts anew.
func (r *refusals) flush() (s summary) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.total, s.counts = r.total, r.counts
	r.total, r.counts = 0, nil
	return s
}

// summarize logs what was refused since it was last called: a line for each tenant, one for all but the
// worst, and none where nothing was refused.
func (g *governor) summarize() {
	var all []summary
	for t := range g.tenants.All() {
		if s := t.Value.refusals.flush(); s.total > 0 {
			s.tenant = t.Shown()
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b summary) int { return int(b.total - a.total) })
	if rest := all[min(len(all), summaryTenants):]; len(rest) > 1 {
		others := summary{tenant: tenant.OtherName, counts: map[admission.Reason]int64{}}
		for _, s := range rest {
			for reason, n := range s.counts {
				others.counts[reason] += n
			}
		}
		all = append(all[:summaryTenants], others)
	}
	what := "Batches were refused"
	if g.config.Mode == ModeObserve {
		what = "Batches would have been refused"
	}
	holders := zap.Any("largest_holders", g.largestHolders())
	for _, s := range all {
		g.logger.Warn(what, zap.String("tenant", s.tenant),
			zap.Stringer("within", summaryInterval), zap.Any("batches", s.counts), holders)
	}
}

// largestHolders returns the bytes of those who hold most now. It is for the server's log: no client is
// told who else there is.
func (g *governor) largestHolders() map[string]int64 {
	holders := map[string]int64{}
	for _, u := range g.usages(summaryHolders, func(*member) bool { return true }) {
		if u.bytes > 0 && u.name != tenant.OtherName {
			holders[u.name] = u.bytes
		}
	}
	return holders
}
