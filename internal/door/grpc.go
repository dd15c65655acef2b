// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"math"
	"runtime"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
	"github.com/otel-governor/otel-governor/internal/footprint"
)

const (
	// connectionWindow is what a connection carries in one round trip, of all its calls.
	connectionWindow = 1 << 20
	// maxHeaders is the size of a call's headers at most, as HTTP/2 counts them: 32 bytes beside each name and value.
	// By itself grpc takes 16 MiB, which need a byte on the wire for each header that was sent before: half a megabyte
	// that became some 40 of heap, before anybody is asked.
	maxHeaders = 64 << 10
	// streamWorkers is how many goroutines for each processor serve one call after another, whose stacks need not grow
	// again for each: 1 % of all the work on requests of 162 kB. Calls beyond those have goroutines of their own.
	streamWorkers = 4
)

// streamWindow is what a client sends of a message before anybody asked for it, and so what a refused one costs, where
// limit is what may be on its way in. By itself grpc would raise it to 16 MiB for whoever is fast. A longer message takes
// one round trip more, in which grpc asks for all of it: for one of 162 kB that was 2 to 3 % of all the work on it.
func streamWindow(limit int64) int64 {
	const share, least, most = 64, 64 << 10, 256 << 10
	return min(max(limit/share, least), most)
}

// signals are what the OTLP export methods carry.
var signals = map[string]string{
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export":                  "traces",
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export":              "metrics",
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export":                    "logs",
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export": "profiles",
}

// GRPCServerOptions returns what makes a gRPC server one behind the door. They come after those of the
// authenticator, so that the interceptor knows who was authenticated; an interceptor between the two sees
// requests that are still empty. A server can have one tap only, and panics at a second one: GRPCTap must be
// off where another middleware has one.
func (d *Door) GRPCServerOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		experimental.BufferPool(d.buffers),
		grpc.ForceServerCodecV2(codec{CodecV2: d.protobuf, door: d}),
		grpc.RPCDecompressor(asPacked{}), //lint:ignore SA1019 an encoding.Compressor is one for all of the process
		grpc.StatsHandler(watcher{d}),
		grpc.StaticStreamWindowSize(int32(streamWindow(d.wire.limit()))),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.NumStreamWorkers(uint32(streamWorkers * runtime.GOMAXPROCS(0))),
		grpc.ChainUnaryInterceptor(d.unary),
		grpc.ChainStreamInterceptor(d.stream),
	}
	if d.GRPCTap {
		options = append(options, grpc.InTapHandle(d.tap))
	}
	if d.MaxStreams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(uint32(min(d.MaxStreams, math.MaxUint32))))
	}
	return options
}

// stream lets a stream through unless the state of things forbids it: what it carries is not known here.
func (d *Door) stream(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if c := callOf(s.Context()); c.refused != nil {
		return c.refused
	}
	if err := d.Governor.Check(s.Context(), admission.Request{}); err != nil {
		return err
	}
	return next(server, s)
}

// unary admits an export by its bytes on the wire, decodes it and passes it on under the lease. Any other call
// is passed on as it is.
func (d *Door) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (response any, err error) {
	c := callOf(ctx)
	if c.refused != nil {
		return nil, c.refused
	}
	if c.request == nil {
		return next(ctx, request)
	}
	var lease admission.Lease
	defer func() {
		if p := recover(); p != nil {
			d.Logger.Error("Processing a request panicked", zap.Any("panic", p), zap.Stack("stack"))
			response = nil
			if lease != nil {
				err = lease.Refuse(ctx, admission.Panicked, 0, 0)
			} else {
				err = d.Refuse(ctx, c.signal, admission.Panicked, 0, 0)
			}
		}
		if lease != nil {
			lease.Release(err)
		}
		d.distrust(&c.trust)
	}()
	if err = d.look(ctx, c); err != nil {
		return nil, err
	}
	if err = d.unpack(ctx, c, &lease); err != nil {
		return nil, err
	}
	work := int64(c.body.Len())
	if lease == nil {
		if lease, work, err = d.admit(ctx, c); err != nil {
			return nil, err
		}
	}
	if err = d.decode(ctx, c, work, lease, request); err != nil {
		return nil, err
	}
	return next(admission.ContextWithLease(ctx, lease), request)
}

// look looks at the state of things, where the tap could not: before anything is unpacked or weighed.
func (d *Door) look(ctx context.Context, c *call) error {
	if !d.GRPCTap {
		if err := d.crowded(ctx, c, 0); err != nil {
			return err
		}
	}
	if d.GRPCTap && d.TenantByHeader {
		return nil
	}
	return d.Governor.Check(ctx, admission.Request{Signal: c.signal, Provisional: true})
}

// admit weighs what the call brought and asks for a lease on that, and says how much work it is to decode it.
func (d *Door) admit(ctx context.Context, c *call) (lease admission.Lease, work int64, err error) {
	r := admission.Request{Signal: c.signal, Provisional: true}
	size := int64(c.body.Len())
	if most := d.Memory.MaxBatch(); size > most {
		r.Memory, r.WireSize = size, size
		lease, err = d.tooLong(ctx, r, most)
		return lease, size, err
	}
	estimate, ok := d.estimate(ctx, c.signal, size, &c.trust)
	r.Memory, r.WireSize, work = estimate, size, size
	if !ok {
		var w footprint.Weight
		var malformed error
		if err := d.work(ctx, d.heavy, size/walkShare, func() {
			w, malformed = footprint.Wire(weighed[c.signal], c.join(), d.enough())
		}, d.refusing(c.signal)); err != nil {
			return nil, 0, err
		}
		if malformed != nil {
			return nil, 0, undecodable(malformed)
		}
		r.Memory, r.Items, work = w.Memory, w.Items, w.Memory/heapRatio
	}
	lease, err = d.Governor.Admit(ctx, r)
	return lease, work, err
}

// decode makes the request of the bytes that the call brought, which is so much work, and gives those back.
func (d *Door) decode(ctx context.Context, c *call, work int64, lease admission.Lease, request any) error {
	c.taken()
	decoded, err := d.enter(ctx, d.heavy, work, lease.Refuse)
	if err != nil {
		return err
	}
	defer decoded()
	c.join()
	err = d.protobuf.Unmarshal(c.body, request)
	c.free()
	if err != nil {
		return undecodable(err)
	}
	return nil
}

// undecodable is the answer that OTLP has for a request which is not one.
func undecodable(err error) error {
	return status.Errorf(codes.InvalidArgument, "the request cannot be decoded: %v", err)
}
