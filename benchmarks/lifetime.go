// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otel-governor/otel-governor/internal/lifetime"
)

// decodeWatched decodes a batch and has it followed until it is gone. What the garbage collector does for
// that is in the time, since it runs all along.
func decodeWatched(b *testing.B) {
	wire := spans.wire(b)
	for b.Loop() {
		td, err := spans.unmarshal(wire)
		if err != nil {
			panic(err)
		}
		watch(td)
	}
}

// watchOne is the same for a batch of one span that is built by hand, so that following it is most of the
// work.
func watchOne(b *testing.B) {
	for b.Loop() {
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		watch(td)
	}
}

func watch(td ptrace.Traces) {
	w := lifetime.Traces(td)
	w.Then(gone)
	runtime.KeepAlive(td) // or it could be gone before Then, which costs less
}

func gone() {}
