// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/otel-governor/otel-governor/admission"
)

// lent is a lease as those further down see it. That one of them settles it says that the body is decoded; a
// refusal that it meets is what became of the request, of which the handler's answer no longer says the reason.
type lent struct {
	admission.Lease
	body    *replay
	decoded func() // gives the place back in which that was done
	refusal atomic.Pointer[admission.Error]
}

// Settle implements admission.Lease.
func (l *lent) Settle(ctx context.Context, r admission.Request) (admission.Lease, error) {
	l.decoded()
	l.body.owe(0)
	part, err := l.Lease.Settle(ctx, r)
	if refusal, is := errors.AsType[*admission.Error](err); is {
		l.refusal.Store(refusal)
	}
	return part, err
}

// outcome is what became of a request that was answered with a code.
func (l *lent) outcome(code int) error {
	if refusal := l.refusal.Load(); refusal != nil {
		return refusal
	}
	if code >= http.StatusBadRequest {
		return errHandler
	}
	return nil
}

// recorder notes how a request is answered. What else the ResponseWriter can do is found by Unwrap, as
// http.ResponseController does.
type recorder struct {
	http.ResponseWriter
	code int // 0 before the answer has begun
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && (code >= http.StatusOK || code == http.StatusSwitchingProtocols) {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, for handlers that know no http.ResponseController.
func (r *recorder) Flush() {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Unwrap returns what is recorded.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
