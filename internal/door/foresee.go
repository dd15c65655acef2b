// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
)

// mostForeseen is the most that a message is taken for before it is unpacked. It is what a server takes by itself, and
// more than what clients send.
const mostForeseen = maxMessage

// unseen reports whether grpc unpacks messages of an encoding, as it does with what it knows and is not for [asPacked]:
// in one go, before anybody sees what comes out, and also where the call has been canceled.
func unseen(name string) bool {
	return name != "" && name != asPacked{}.Type() && encoding.GetCompressor(name) != nil
}

// unpacks is what a message may become that grpc unpacks.
func (d *Door) unpacks() int64 { return min(d.MaxMessage, mostForeseen) }

// foresee has a call whose message grpc unpacks count for what that may become, until it is whole. It reports whether
// the call is one of those that have yet to wait.
//
// The headers say how a message is packed, but not to the tap. So it takes a call for one like the last on the same
// connection, and what it took for another is looked at again here. Where there is no room for it, the call ends.
func (c *call) foresee(ctx context.Context) (wait bool) {
	is := unseen(c.encoding)
	c.connection.unseen.Store(is)
	switch d := c.door; {
	case !is:
		c.overlook()
		return true
	case c.refused != nil:
		return true
	case c.ahead.Load() == 0:
		d.spared.give(c) // for the sake of a smaller one
		d.foreseeing.Lock()
		if c.refused = d.crowded(d.heard(ctx, c), c, d.unpacks()); c.refused == nil {
			c.expect(d.unpacks())
		}
		d.foreseeing.Unlock()
		if c.refused != nil && c.cancel != nil {
			c.stop()
		}
	}
	return false
}

// expect has the call count for so many bytes more, until overlook.
func (c *call) expect(bytes int64) {
	c.ahead.Add(bytes)
	c.peer.add(bytes)
}

// overlook ends that. It may be called more than once, at any time.
func (c *call) overlook() {
	if ahead := c.ahead.Swap(0); ahead > 0 {
		c.peer.add(-ahead)
	}
}

// speaker returns ctx as that of whom the headers of a call name, if they say who that is. Without a name only what
// holds for all is looked at.
func (d *Door) speaker(ctx context.Context, c *call, headers metadata.MD) context.Context {
	if !d.TenantByHeader {
		return ctx
	}
	return client.NewContext(ctx, client.Info{Addr: c.remote, Metadata: client.NewMetadata(headers)})
}

// heard is that for a call whose headers are in ctx.
func (d *Door) heard(ctx context.Context, c *call) context.Context {
	headers, _ := metadata.FromIncomingContext(ctx)
	return d.speaker(ctx, c, headers)
}
