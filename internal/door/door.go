// SPDX-License-Identifier: Apache-2.0

// Package door refuses requests before they are decoded. It is the middleware of a receiver: it knows the
// bytes of a request on the wire, weighs what they will become, and asks the governor before any of that
// exists. What it lets in goes on with the lease in its context.
//
// It is a user of the contract of package admission like any other and decides nothing itself, but for what
// only it can see: bytes that are on their way in, connections, and bodies that do not come.
package door

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/encoding"

	"github.com/otel-governor/otel-governor/admission"
)

// Settings are what a door is made with. The functions must be safe for concurrent use and quick.
type Settings struct {
	Governor admission.Governor
	Logger   *zap.Logger
	Memory   Memory

	// Refuse makes the answer for what the door refuses itself, and its one point in telemetry. The tenant is
	// whom ctx speaks for; the signal may be empty where it is not known.
	Refuse func(ctx context.Context, signal string, reason admission.Reason, observed, limit int64) *admission.Error
	// Critical reports whether new work is refused for want of memory, so that clients had better go elsewhere.
	Critical func() bool
	// Ease returns what of whoever ctx speaks for is admitted unweighed and with its items unknown: nothing of a tenant
	// who is held to a number of items. Nil: all are weighed.
	Ease func(ctx context.Context) Ease
	// Known returns the name of the tenant that ctx speaks for if it is one that nobody can invent, or nothing. Nil:
	// nobody is.
	Known func(ctx context.Context) string
	// Signal returns the signal that an HTTP path carries by the configuration of the receivers: traces,
	// metrics, logs, profiles, or empty where it is not known. Where receivers differ it is the heaviest.
	Signal func(path string) string

	// Observe lets everything in that the door itself would refuse; Refuse is told of it all the same.
	Observe bool
	// TenantByHeader says that a tenant can be told by the headers alone, before anybody authenticated it.
	TenantByHeader bool
	GRPCTap        bool  // refuse at the time of the headers
	MaxConnections int64 // gRPC connections; 0: any number
	// MaxStreams is the number of calls at once on one gRPC connection; 0: what the receiver's own settings say.
	// It is all that bounds the answers to a client which never reads them, at some 3 KB each.
	MaxStreams int64
	// MaxMessage is what a message over gRPC that was packed with gzip may be unpacked, in bytes; 0: 4 MiB, as in grpc.
	MaxMessage   int64
	QueueTimeout time.Duration // longest wait for a place to weigh and decode a large request
}

// Ease is what is admitted unweighed.
type Ease struct {
	// Worst is the heap that a batch may take at worst, which it is charged: a small part of what is free now, within
	// the tenant's max_batch_memory.
	Worst int64
	// Ratio is how much heap the tenant's batches lately took for a byte of encoding; 0 where that is not known, or
	// more than usual ones take. A batch is taken for as much where all such are at their worst within Trusted.
	Ratio   float64
	Trusted int64
}

// Memory is where bytes are paid for that no lease covers yet.
type Memory interface {
	// Owe adds bytes to what is taken, or gives them back where they are negative. It is never refused.
	Owe(bytes int64)
	// Size is what the pool may hold now.
	Size() int64
	// MaxBatch is the largest batch, in bytes of heap, that could ever be admitted.
	MaxBatch() int64
}

// Door is what stands before the receivers of a process: one for all of them. Its methods are safe for
// concurrent use.
type Door struct {
	Settings
	wire        *wire
	heavy       *places
	light       *places // for weighing what takes its time and is not heavy
	threads     threads
	buffers     *buffers
	kept        kept
	arriving    arriving
	stemming    sync.Mutex // held while that is done
	foreseeing  sync.Mutex // held from looking for room until a call counts for what it may become
	spared      spared
	ended       sync.Mutex       // held by the one ended call whose message grpc may be unpacking
	deaf        atomic.Int64     // calls that wait although the tap refused them
	trusted     atomic.Int64     // bytes that those who were taken at their word may take at worst
	protobuf    encoding.CodecV2 // decodes what the door keeps
	connections atomic.Int64     // open
	bodies      bodies
	leftovers   atomic.Int64  // bytes that grpc keeps of the calls that the tap refused
	draining    chan struct{} // closed once nobody is to wait any more
	drain       sync.Once
}

// New returns a door.
func New(s Settings) *Door {
	w := newWire(s.Memory)
	heavy, light := newPlaces(heavyFrom, s.QueueTimeout), newPlaces(lightFrom, s.QueueTimeout)
	if s.Observe {
		heavy.free, light.free = math.MaxInt, math.MaxInt // nobody waits for what is not enforced
	}
	if s.MaxMessage == 0 {
		s.MaxMessage = maxMessage
	}
	d := &Door{
		Settings: s,
		wire:     w,
		heavy:    heavy,
		draining: make(chan struct{}),
		light:    light,
		buffers:  newBuffers(w),
		protobuf: encoding.GetCodecV2("proto"),
	}
	w.flooded = d.stem
	return d
}

// Drain tells that the receivers are about to stop. They wait for the calls that are under way, which no longer wait for
// their turn. It may be called more than once.
func (d *Door) Drain() { d.drain.Do(func() { close(d.draining) }) }

// refuse returns the refusal of what the door does not let in, or nil where that is only observed.
func (d *Door) refuse(ctx context.Context, signal string, reason admission.Reason, observed, limit int64) error {
	e := d.Refuse(ctx, signal, reason, observed, limit)
	if d.Observe {
		return nil
	}
	return e
}

// refusing is [Settings.Refuse] for a signal.
func (d *Door) refusing(signal string) refusing {
	return func(ctx context.Context, reason admission.Reason, observed, limit int64) *admission.Error {
		return d.Refuse(ctx, signal, reason, observed, limit)
	}
}

// Stats is the state of a door at one moment.
type Stats struct {
	Wire, WireLimit             int64 // bytes on their way in
	Connections, MaxConnections int64 // of gRPC; a limit of 0 is none
}

// Stats returns what is on its way in now.
func (d *Door) Stats() Stats {
	return Stats{
		Wire: d.wire.total.Load(), WireLimit: d.wire.limit(),
		Connections: d.connections.Load(), MaxConnections: d.MaxConnections,
	}
}
