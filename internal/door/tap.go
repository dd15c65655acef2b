// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"time"

	"google.golang.org/grpc/tap"

	"github.com/otel-governor/otel-governor/admission"
)

const (
	// leftover is what is kept of a call that the tap refused until the call's deadline, if it has one: some 330
	// bytes by grpc, and 110 by the timer that tells the door of it. Measured with 20 000 of them.
	leftover = 512
	// leftoverShare is the part of the pool that leftovers may take: one in so many bytes.
	leftoverShare = 50
)

// tap refuses calls by their headers alone. It runs where a connection's frames are read, so it never waits.
// What it lets in carries its call in the context, which can be canceled from then on, and is counted: else a
// burst of calls would come through before the first of them is served. Of a call that grpc gives up before it
// serves it, for a deadline that has passed or a method that nobody knows, only the context's end is heard.
func (d *Door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{door: d, connection: connectionOf(ctx), signal: signals[info.FullMethodName]}
	var ahead int64
	if c.connection.unseen.Load() {
		ahead = d.unpacks()
		d.foreseeing.Lock()
		defer d.foreseeing.Unlock()
	}
	if err := d.turnAway(d.speaker(ctx, c, info.Header), c, ahead); err != nil {
		d.spared.give(c)
		if d.mayLeave(ctx, c.peer.address) {
			return ctx, err
		}
		c.refused = err
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.begin()
	if c.refused == nil && ahead > 0 {
		c.expect(ahead)
	}
	d.arriving.add(c, ctx)
	c.served = context.AfterFunc(ctx, c.depart)
	return context.WithValue(ctx, callKey{}, c), nil
}

// turnAway returns the refusal of a call by the state of things alone, or nil.
func (d *Door) turnAway(ctx context.Context, c *call, ahead int64) error {
	if err := d.crowded(ctx, c, ahead); err != nil {
		return err
	}
	return d.Governor.Check(ctx, admission.Request{Signal: c.signal})
}

// crowded returns the refusal of a call by what only the door knows, or nil: more connections than may be, or
// more bytes on their way in. Ahead is what its message may become where that cannot be seen; else 0.
func (d *Door) crowded(ctx context.Context, c *call, ahead int64) error {
	if c.late.Load() {
		open := d.connections.Load()
		if open > d.MaxConnections {
			return d.refuse(ctx, c.signal, admission.Connections, open, d.MaxConnections)
		}
		c.late.Store(false) // others have left
	}
	if observed, limit, over := c.peer.over(c.brought()); over && !d.spare(ctx, c, ahead) {
		if !d.Observe {
			d.bodies.cutOff() // who is slow over HTTP must not keep others out
		}
		return d.refuse(ctx, c.signal, admission.MemoryContended, observed, limit)
	}
	return nil
}

// spare reports whether a call comes in for the sake of a tenant that is known.
func (d *Door) spare(ctx context.Context, c *call, ahead int64) bool {
	return d.spared.take(c, d.known(ctx), max(ahead, c.peer.usual()), d.wire.limit())
}

// mayLeave reports whether a call may be refused right here. Until the call's deadline, if it has one, grpc
// keeps what is paid for here; once that is too much in all, the call had better come in and be refused where
// grpc forgets it at once. The timer is not the context's own, which would keep the headers as well.
func (d *Door) mayLeave(ctx context.Context, address string) bool {
	deadline, has := ctx.Deadline()
	if !has {
		return true
	}
	if d.leftovers.Add(leftover) > d.Memory.Size()/leftoverShare {
		d.leftovers.Add(-leftover)
		return false
	}
	p := d.wire.join(address)
	p.add(leftover)
	time.AfterFunc(time.Until(deadline), func() {
		p.add(-leftover)
		p.leave()
		d.leftovers.Add(-leftover)
	})
	return true
}
