// SPDX-License-Identifier: Apache-2.0

package footprint

import "go.opentelemetry.io/collector/pdata/ptrace"

// Traces returns the heap bytes that td keeps alive.
func Traces(td ptrace.Traces) int64 {
	return object(sizeRequest) + flat(sizeState) +
		tree(td.ResourceSpans(), sizeResource, ptrace.ResourceSpans.ScopeSpans, spans)
}

func spans(ss ptrace.ScopeSpans) int64 {
	all := ss.Spans()
	n := all.Len()
	heap := pointed(n, sizeSpan)
	for i := range n {
		s := all.At(i)
		heap += text(s.Name()) + text(s.TraceState().AsRaw()) + text(s.Status().Message()) +
			attributes(s.Attributes())
		if es := s.Events(); es.Len() > 0 {
			heap += each(es, sizeSpanEvent, spanEvent)
		}
		if ls := s.Links(); ls.Len() > 0 {
			heap += each(ls, sizeSpanLink, spanLink)
		}
	}
	return heap
}

func spanEvent(e ptrace.SpanEvent) int64 { return text(e.Name()) + attributes(e.Attributes()) }

func spanLink(l ptrace.SpanLink) int64 {
	return text(l.TraceState().AsRaw()) + attributes(l.Attributes())
}
