// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/admission"
)

// scribe is a governor that writes down what it is asked, and lets everything in unless told otherwise.
type scribe struct {
	check    func(context.Context, admission.Request) error
	admit    func(context.Context, admission.Request) error
	identify func(context.Context) string

	held  atomic.Int64 // leases
	mu    sync.Mutex
	asked []admission.Request
	ended []*written
}

// written is a lease of a scribe.
type written struct {
	admission.Lease
	scribe  *scribe
	request admission.Request
	ended   atomic.Bool
	outcome error
}

func (s *scribe) Register(admission.Limits) (admission.Ceilings, bool, error) { panic("not a door's") }

func (s *scribe) Identify(ctx context.Context) (string, bool) {
	if s.identify == nil {
		return "default", false
	}
	return s.identify(ctx), true
}

func (s *scribe) Check(ctx context.Context, r admission.Request) error {
	if s.check == nil {
		return nil
	}
	return s.check(ctx, r)
}

func (s *scribe) Admit(ctx context.Context, r admission.Request) (admission.Lease, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	if s.admit != nil {
		if err := s.admit(ctx, r); err != nil {
			return nil, err
		}
	}
	s.held.Add(1)
	return &written{scribe: s, request: r}, nil
}

func (w *written) Refuse(_ context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
	return &admission.Error{Reason: reason, Observed: observed, Limit: limit}
}

func (w *written) Release(outcome error) {
	if !w.ended.CompareAndSwap(false, true) {
		return
	}
	w.outcome = outcome
	w.scribe.mu.Lock()
	w.scribe.ended = append(w.scribe.ended, w)
	w.scribe.mu.Unlock()
	w.scribe.held.Add(-1)
}

// purse is the memory that a door pays from.
type purse struct {
	size, maxBatch int64
	owed, most     atomic.Int64
	clear          chan struct{} // filled whenever nothing is owed any more
}

func (p *purse) Size() int64     { return p.size }
func (p *purse) MaxBatch() int64 { return p.maxBatch }

func (p *purse) Owe(bytes int64) {
	owed := p.owed.Add(bytes)
	for most := p.most.Load(); owed > most && !p.most.CompareAndSwap(most, owed); most = p.most.Load() {
	}
	if owed == 0 {
		select {
		case p.clear <- struct{}{}:
		default:
		}
	}
}

// settle returns once nothing is owed any more. What is garbage is collected for that: twice, since grpc's pools still
// point at frames that were written, and those at their streams. A pool lets go of what is in it at the second.
func (p *purse) settle(t *testing.T) {
	t.Helper()
	select { // what an earlier moment left
	case <-p.clear:
	default:
	}
	if p.owed.Load() == 0 {
		return
	}
	runtime.GC()
	runtime.GC()
	for p.owed.Load() != 0 {
		select {
		case <-p.clear:
		case <-time.After(time.Minute):
			t.Fatalf("%d bytes are owed that nobody has", p.owed.Load())
		}
	}
}

func newPurse(size, maxBatch int64) *purse {
	return &purse{size: size, maxBatch: maxBatch, clear: make(chan struct{}, 1)}
}
