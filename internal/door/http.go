// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/admission"
)

// drain is how long a client that is refused may go on sending what nobody reads, so that its connection
// stays usable. One that takes longer loses the connection.
const drain = time.Second

// errHandler is what becomes of a batch that the next handler answered with an error of its own.
var errHandler = errors.New("the receiver answered with an error")

// HTTPHandler returns a handler that reads the body of a request, has it admitted and hands it on to next,
// whatever the receiver. A request without a body passes untouched: it brings nothing to hold.
//
// In a receiver's list of middlewares it comes after authentication and decompression, so that the tenant is
// known and a body counts by what comes out. What the receiver decompresses in one piece before any middleware
// (block snappy) it has in memory before it can be refused, up to its max_request_body_size; neither are the
// windows of decompressors counted.
//
// A place is taken once the body is whole: until then a sender holds the bytes that it sent. Only what has a
// signal by its path and a known encoding is weighed; any other body is taken for six times its size, like a
// usual batch, or for the most that Zipkin's receiver makes of it, until a limiter knows better. What is large is
// decoded in a heavy place like over gRPC.
func (d *Door) HTTPHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ask := admission.Request{Signal: d.Signal(r.URL.Path), Provisional: true}
		if err := d.Governor.Check(r.Context(), ask); err != nil {
			d.answerUnread(w, r, err)
			return
		}
		d.govern(w, r, ask, next)
	})
}

// govern is HTTPHandler for a request with a body, once its headers have been found good.
func (d *Door) govern(w http.ResponseWriter, r *http.Request, ask admission.Request, next http.Handler) {
	ctx := r.Context()
	var lease admission.Lease
	defer func() {
		if lease != nil { // the first release counts: this is for what did not get as far as the handler
			lease.Release(errHandler)
		}
	}()
	b := d.receive(w, r, ask.Signal)
	defer b.free()
	var t trust
	defer d.distrust(&t)
	err := b.read(ctx, func(bytes int64) (err error) {
		ask.Memory = bytes // at least, and too much: the tenant's breach like any other, unless nothing is enforced
		lease, err = d.tooLong(ctx, ask, b.most)
		return err
	})
	switch {
	case b.pace.late(): // nothing more is read
		d.answer(w, r, err)
		return
	case err != nil:
		d.answerUnread(w, r, err)
		return
	}
	if b.failed != nil { // the handler finds that out and answers as it always does
		replay := b.handOn(r.Body)
		defer replay.owe(0)
		r = r.WithContext(ctx)
		r.Body = replay
		next.ServeHTTP(w, r)
		return
	}
	work := int64(len(b.data))
	if lease == nil {
		if lease, work, err = d.admitBody(r, b.data, ask, &t); err != nil {
			d.answer(w, r, err)
			return
		}
	}
	decoded, err := d.decoding(ctx, work, lease)
	if err != nil {
		lease.Release(err)
		d.answer(w, r, err)
		return
	}
	defer decoded()
	replay := b.handOn(r.Body)
	defer replay.owe(0)
	d.pass(w, r, &lent{Lease: lease, body: replay, decoded: decoded}, next)
}

// decoding takes a place for the handler, which decodes where this cannot see it, until decoded is called: by a limiter
// or at the handler's end, or else when such work has taken too long to be all that it does.
func (d *Door) decoding(ctx context.Context, work int64, lease admission.Lease) (decoded func(), err error) {
	if decoded, err = d.enter(ctx, d.heavy, work, lease.Refuse); err == nil && work > heavyFrom {
		time.AfterFunc(time.Duration(work)*heavyHold/heavyFrom, decoded)
	}
	return decoded, err
}

// admitBody weighs the whole body of r and has it admitted, and says how much work it is to decode it.
func (d *Door) admitBody(
	r *http.Request, body []byte, ask admission.Request, t *trust,
) (lease admission.Lease, work int64, err error) {
	if ask.Share, work, err = d.weighBody(r, ask.Signal, body, t); err != nil {
		return nil, 0, err
	}
	lease, err = d.Governor.Admit(r.Context(), ask)
	return lease, work, err
}

// pass calls next with the body under the lease and releases that, whatever next does. A panic is the answer to
// that one request, or the end of its connection if an answer has begun.
func (d *Door) pass(w http.ResponseWriter, r *http.Request, lease *lent, next http.Handler) {
	seen := &recorder{ResponseWriter: w}
	r = r.WithContext(admission.ContextWithLease(r.Context(), lease))
	r.Body, r.ContentLength = lease.body, lease.body.size
	finished := false
	defer func() {
		p := recover()
		switch {
		case p == nil && finished:
			lease.Release(lease.outcome(seen.code))
		case p == nil || p == http.ErrAbortHandler: // the goroutine or the connection is being ended
			lease.Release(errHandler)
		default:
			d.Logger.Error("Processing a request panicked", zap.Any("panic", p), zap.Stack("stack"))
			refusal := lease.Refuse(r.Context(), admission.Panicked, 0, 0)
			lease.Release(refusal)
			if p = http.ErrAbortHandler; seen.code == 0 {
				w.Header().Del("Content-Length") // of the answer that did not come about
				w.Header().Del("Content-Encoding")
				d.answer(w, r, refusal)
				p = nil
			}
		}
		if p != nil {
			panic(p)
		}
	}()
	next.ServeHTTP(seen, r)
	finished = true
}

// answerUnread refuses a request whose body has not been read to its end.
func (d *Door) answerUnread(w http.ResponseWriter, r *http.Request, refusal error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drain))
	d.answer(w, r, refusal)
}
