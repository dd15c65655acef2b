// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
)

// connection is one of gRPC.
type connection struct {
	remote net.Addr
	peer   *peer
	late   atomic.Bool // it came when there were as many as may be
	unseen atomic.Bool // grpc unpacks what comes on it, as of its last call
}

// call is one RPC.
type call struct {
	*connection
	door    *Door
	signal  string                  // that it carries, or empty
	refused error                   // by the tap, which let it in all the same, or once it was known how it is packed
	cancel  context.CancelCauseFunc // nil where there is no tap
	served  func() bool             // tells that grpc serves it; nil where there is no tap

	spared   string       // the tenant for whose sake it was let in
	expected int64        // bytes that it will bring then
	here     atomic.Bool  // counted with its peer
	coming   atomic.Bool  // its message is not whole yet
	order    int64        // among those that the tap let in
	ahead    atomic.Int64 // bytes that it is counted for until then, for what it may become

	// What follows belongs to the goroutine that serves the call.
	request  any             // of an export, which the codec did not decode
	body     mem.BufferSlice // its bytes
	pooled   int64           // of those, from the pool of buffers
	beside   int64           // and not from there, with what they take beside
	unpacked *body           // what counts the bytes instead, once they were unpacked
	encoding string          // that its message is in
	last     bool            // it is the one of those that have ended whose message may still be unpacked
	turn     bool            // it is one of those whose message may come
	trust    trust           // that it was given
}

// perCall is the memory that a call takes until its message is whole, beside the bytes of that: stack, stream,
// contexts and headers. It was 14 KiB with 5 000 calls that had sent five bytes and stalled.
const perCall = 16 << 10

// perFrame is what a frame of 1 KiB or less takes beside its bytes: the allocation's rounding, a slice header
// that is boxed, and a place in the list of buffers.
const perFrame = 64

// turnAfter is how long a call waits at most for its turn to bring its message, and how long one waits that the tap
// refused and yet let in.
const turnAfter = time.Second

// deafShare is the part of what may be on its way in that calls may take which the tap refused and let in: one in so
// many bytes. They wait with what comes of a message before anybody asks for it.
const deafShare = 4

type (
	connectionKey struct{}
	callKey       struct{}
)

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// watcher ties what arrives to its connection and call. It implements stats.Handler: grpc tells it of the
// begin and the end of every call that reaches a method, and of no other.
type watcher struct{ *Door }

var _ stats.Handler = watcher{}

// TagConn implements stats.Handler.
func (w watcher) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	c := &connection{remote: info.RemoteAddr, peer: w.wire.join(host(info.RemoteAddr))}
	return context.WithValue(ctx, connectionKey{}, c)
}

// HandleConn implements stats.Handler.
func (w watcher) HandleConn(ctx context.Context, s stats.ConnStats) {
	c := connectionOf(ctx)
	switch s.(type) {
	case *stats.ConnBegin:
		open := w.connections.Add(1)
		c.late.Store(w.MaxConnections > 0 && open > w.MaxConnections)
	case *stats.ConnEnd:
		w.connections.Add(-1)
		c.peer.leave()
	}
}

// TagRPC implements stats.Handler. The tap has made the call already if there is one.
func (w watcher) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if callOf(ctx) != nil {
		return ctx
	}
	c := &call{door: w.Door, connection: connectionOf(ctx), signal: signals[info.FullMethodName]}
	return context.WithValue(ctx, callKey{}, c)
}

// HandleRPC implements stats.Handler.
func (w watcher) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InHeader:
		callOf(ctx).encoding = s.Compression
	case *stats.Begin:
		c := callOf(ctx)
		if c.served != nil {
			c.served()
		} else {
			c.begin()
		}
		switch {
		case s.IsClientStream: // what it carries comes and goes
			c.depart()
		case c.foresee(ctx) && c.served != nil:
			c.wait(ctx)
		}
	case *stats.InPayload:
		callOf(ctx).whole(s.Payload)
	case *stats.End:
		callOf(ctx).end()
	}
}

// begin counts the call as being on its way in, until depart.
func (c *call) begin() {
	c.here.Store(true)
	c.coming.Store(true)
	c.peer.begin(true)
	c.peer.add(perCall)
}

// wait has the call wait for its turn to bring its message, which grpc does not read before. One that the tap
// refused comes from whoever does not hear refusals: it waits as long as anybody may before, which slows them down.
// Where it does not get its turn even then, or too many wait like that, it ends here. Its client sees a canceled call
// then, which OTLP has it retry.
func (c *call) wait(ctx context.Context) {
	if c.refused != nil {
		defer c.door.deaf.Add(-1)
		limit := c.door.wire.limit()
		if c.door.deaf.Add(1) > limit/deafShare/(perCall+streamWindow(limit)) {
			c.stop()
			return
		}
		pause := time.NewTimer(turnAfter)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-c.door.draining:
		case <-ctx.Done():
		}
	}
	if c.turn = !unseen(c.encoding) && c.peer.turn(ctx, turnAfter, c.door.draining); !c.turn && c.refused != nil {
		c.stop()
	}
}

// stop ends a call that is refused. That is not the end of a message that grpc unpacks: those go on one by one.
func (c *call) stop() {
	c.cancel(c.refused)
	if unseen(c.encoding) {
		c.door.ended.Lock()
		c.last = true
	}
}

// read ends the call's turn, if it has one, with a message of that size.
func (c *call) read(bytes int64) {
	if c.turn {
		c.turn = false
		c.peer.read(bytes)
	}
}

// arrived takes the call off those whose message is not whole. It may be called more than once, at any time.
func (c *call) arrived() {
	c.overlook()
	if !c.coming.CompareAndSwap(true, false) {
		return
	}
	c.peer.arrived()
	c.door.arriving.remove(c)
}

// depart takes the call off those on their way in. It may be called more than once, at any time.
func (c *call) depart() {
	c.arrived()
	c.door.spared.give(c)
	if c.here.CompareAndSwap(true, false) {
		c.peer.end()
		c.peer.add(-perCall)
	}
}

// whole takes over the bytes of the call's message, if the codec has kept them; else they are gone already.
func (c *call) whole(message any) {
	c.arrived()
	body, ok := c.door.kept.claim(message)
	c.read(int64(body.Len()))
	if !ok {
		c.free()
		return
	}
	c.request = message
	if c.refused != nil { // whatever it is
		body.Free()
		c.free()
		return
	}
	c.hold(body)
}

// brought is what the call has on its way in.
func (c *call) brought() int64 {
	if !c.here.Load() {
		return 0
	}
	return perCall + c.ahead.Load() + c.pooled + c.beside
}

// hold makes body the call's, and pays for it.
func (c *call) hold(body mem.BufferSlice) {
	c.body = body
	for _, b := range body {
		if _, small := b.(mem.SliceBuffer); small {
			c.beside += int64(b.Len()) + perFrame
		} else {
			c.pooled += int64(b.Len())
		}
	}
	c.peer.claim(c.pooled)
	c.peer.add(c.beside)
}

// drop gives the body back.
func (c *call) drop() {
	c.body.Free()
	c.peer.claim(-c.pooled)
	c.peer.add(-c.beside)
	c.body, c.pooled, c.beside = nil, 0, 0
	if c.unpacked != nil {
		c.unpacked.free()
		c.unpacked = nil
	}
}

// join puts the body into one piece and returns it, to be read until free.
func (c *call) join() []byte {
	if len(c.body) != 1 {
		joined := c.body.MaterializeToBuffer(c.door.buffers)
		c.drop()
		c.hold(mem.BufferSlice{joined})
	}
	return c.body[0].ReadOnlyData()
}

// free gives the bytes of the call back, and with them its place among those on their way in. It may be called
// more than once.
func (c *call) free() {
	c.drop()
	c.depart()
}

// end is the end of the call, wherever it ended.
func (c *call) end() {
	if c.last {
		c.door.ended.Unlock()
	}
	c.read(0)
	c.free()
	c.taken()
}

// taken lets another call have the request's memory: pdata may reuse what a handler is through with.
func (c *call) taken() {
	if c.request != nil {
		c.door.kept.drop(c.request)
		c.request = nil
	}
}

// host is the address of a peer without its port.
func host(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return a.String()
}
