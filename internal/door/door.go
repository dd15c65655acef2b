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
	"time"

	"go.uber.org/zap"

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
	// Signal returns the signal that an HTTP path carries by the configuration of the receivers: traces,
	// metrics, logs, profiles, or empty where it is not known. Where receivers differ it is the heaviest.
	Signal func(path string) string

	// TenantByHeader says that a tenant can be told by the headers alone, before anybody authenticated it.
	TenantByHeader bool
	GRPCTap        bool          // refuse at the time of the headers
	MaxConnections int64         // gRPC connections; 0: any number
	QueueTimeout   time.Duration // longest wait for a place to weigh and decode a large request
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
