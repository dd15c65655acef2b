// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
)

// summaryInterval is how often refusals are logged. A line per refusal would make the log the next thing
// to run out under a flood.
const summaryInterval = 10 * time.Second

// refusals counts what was refused since the last summary. The zero value is ready for use.
type refusals struct {
	mu     sync.Mutex
	counts map[admission.Reason]int64
}

func (r *refusals) add(reason admission.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[admission.Reason]int64{}
	}
	r.counts[reason]++
}

// flush logs one line if anything was refused, and starts anew.
func (r *refusals) flush(logger *zap.Logger) {
	r.mu.Lock()
	counts := r.counts
	r.counts = nil
	r.mu.Unlock()
	if len(counts) > 0 {
		logger.Warn("Batches were refused", zap.Duration("within", summaryInterval), zap.Any("batches", counts))
	}
}
