// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
)

// Classes of refusals, for [errors.Is].
var (
	// ErrLimitExceeded is the class of what the same batch will meet again: it must be changed or dropped.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrOverloaded is the class of what the process has too little of for now.
	ErrOverloaded = errors.New("overloaded")
	// ErrQuota is the class of what the tenant has used up for now.
	ErrQuota = errors.New("quota exceeded")
)

// Reason says why a batch was refused. The value is at once the `error.type` of the telemetry, the
// reason in the status' ErrorInfo and the log field. The list is closed: it is the set of constants below.
type Reason string

// The reasons, with what Error.Observed and Error.Limit mean for each.
const (
	BatchMemory       Reason = "batch_memory"       // bytes of the batch / max_batch_memory
	BatchItems        Reason = "batch_items"        // items of the batch / max_batch_items
	MemoryLimit       Reason = "memory_limit"       // bytes needed / all that there is for this tenant
	RateBurst         Reason = "rate_burst"         // units of the batch / burst
	TenantUnknown     Reason = "tenant_unknown"     // the tenant is not on the list of those allowed
	Panicked          Reason = "panic"              // the next consumer panicked on this batch
	MemoryContended   Reason = "memory_contended"   // bytes needed / the pool, of which others hold too much
	QueueFull         Reason = "queue_full"         // batches in line / allowed
	QueueTimeout      Reason = "queue_timeout"      // milliseconds waited for a slot / allowed
	MemoryPressure    Reason = "memory_pressure"    // bytes used / threshold
	DiskLow           Reason = "disk_low"           // bytes free / reserve
	BodyTimeout       Reason = "body_timeout"       // milliseconds that a request's body took / allowed
	Connections       Reason = "connections"        // connections open / allowed
	ProcessingTimeout Reason = "processing_timeout" // milliseconds at work / allowed
	ShuttingDown      Reason = "shutting_down"      // the process is about to end
	TenantConcurrency Reason = "tenant_concurrency" // the tenant's batches at work / its ceiling
	TenantMemory      Reason = "tenant_memory"      // the tenant's bytes / its share for now
	TenantBreaker     Reason = "tenant_breaker"     // the tenant's breaches / allowed
	TenantRate        Reason = "tenant_rate"        // units of the batch / burst
	Canceled          Reason = "canceled"           // the caller went away
)

// permanence is what a refusal wraps when the same batch can never pass: it is of the class
// ErrLimitExceeded, and consumererror.IsPermanent holds for it.
var permanence = consumererror.NewPermanent(ErrLimitExceeded)

// verdict is a row of the table of reasons.
type verdict struct {
	class   error // what the error wraps; nil for a caller that went away
	code    codes.Code
	delayed bool   // carries RetryInfo
	breach  bool   // counts against the tenant's breaker
	unit    string // of Observed and Limit, in UCUM; empty if the error says it
	message string // in which {observed}, {limit} and {unit} are replaced
}

// verdicts is the table of reasons. Two of its choices deviate from the letter of OTLP, so that every
// stock client does the right thing (docs/decisions/0002-status-codes.md): "too large" is
// InvalidArgument, because HTTP clients retry 429 for ever, and what is refused for now is Unavailable,
// because gRPC clients drop ResourceExhausted.
var verdicts = map[Reason]verdict{
	BatchMemory: {
		class: permanence, code: codes.InvalidArgument, breach: true, unit: "By",
		message: "the batch takes {observed} bytes of memory and max_batch_memory is {limit}: send smaller batches",
	},
	BatchItems: {
		class: permanence, code: codes.InvalidArgument, breach: true, unit: "{item}",
		message: "the batch has {observed} items and max_batch_items is {limit}: send smaller batches",
	},
	MemoryLimit: {
		class: permanence, code: codes.InvalidArgument, breach: true, unit: "By",
		message: "the batch needs {observed} bytes of memory and can have {limit} at most, so it can never fit: send smaller batches",
	},
	RateBurst: {
		class: permanence, code: codes.InvalidArgument,
		message: "the batch counts {observed} {unit} and the rate's burst is {limit}, so it can never pass: send smaller batches",
	},
	TenantUnknown: {
		class: permanence, code: codes.PermissionDenied,
		message: "this tenant is not one of those allowed",
	},
	Panicked: {
		class: permanence, code: codes.Internal, breach: true,
		message: "processing this batch failed with a panic: do not send it again",
	},
	MemoryContended: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "By",
		message: "the batch needs {observed} bytes of memory and too much of the {limit} that it could come from is in use: send it again later",
	},
	QueueFull: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "{batch}",
		message: "with this one {observed} {unit} would wait in line and {limit} may: send it again later",
	},
	QueueTimeout: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "ms",
		message: "no slot became free in {observed} ms and the batch may wait for {limit}: send it again later",
	},
	MemoryPressure: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "By",
		message: "memory is under pressure, {observed} {unit} where new work is accepted below {limit}: send it again later",
	},
	DiskLow: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "By",
		message: "{observed} bytes of disk are free and {limit} are kept in reserve: send it again later",
	},
	BodyTimeout: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "ms",
		message: "the request's body took {observed} ms and may take {limit} while others wait: send it again later",
	},
	Connections: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "{connection}",
		message: "{observed} connections are open and max_connections is {limit}: use another collector, or fewer connections",
	},
	ProcessingTimeout: {
		class: ErrOverloaded, code: codes.Unavailable, delayed: true, unit: "ms",
		message: "the batch was not processed in {observed} ms and processing_timeout is {limit}: send it again later",
	},
	ShuttingDown: {
		class: ErrOverloaded, code: codes.Unavailable,
		message: "the collector is shutting down: send it to another",
	},
	TenantConcurrency: {
		class: ErrQuota, code: codes.Unavailable, delayed: true, unit: "{batch}",
		message: "{observed} batches of this tenant are at work or waiting and max_concurrent is {limit}: send it again later",
	},
	TenantMemory: {
		class: ErrQuota, code: codes.Unavailable, delayed: true, unit: "By",
		message: "this tenant would have {observed} bytes in memory and its share is {limit} for now: send it again later",
	},
	TenantBreaker: {
		class: ErrQuota, code: codes.Unavailable, delayed: true, unit: "{batch}",
		message: "{observed} batches of this tenant were too large or did harm, and {limit} shut it out for a while: mend them, then send again later",
	},
	TenantRate: {
		class: ErrQuota, code: codes.ResourceExhausted, delayed: true,
		message: "the batch counts {observed} {unit} and this tenant's rate, with a burst of {limit}, has not that many left: send it again later",
	},
	Canceled: {
		code:    codes.Canceled,
		message: "the caller went away",
	},
}

// nouns are units as messages have them.
var nouns = map[string]string{"By": "bytes", "{batch}": "batches", "{item}": "items", "{request}": "requests", "%": "percent"}

// Breach reports whether a refusal for this reason is the batch's own fault, to be held against its
// tenant. Refusals for want of room never are: a tenant that is merely busy is not punished.
func (r Reason) Breach() bool { return verdicts[r].breach }

// Permanent reports whether the same batch will be refused again, whenever it is sent.
func (r Reason) Permanent() bool { return verdicts[r].class == permanence }

// Delayed reports whether a refusal for this reason tells the client when to come back.
func (r Reason) Delayed() bool { return verdicts[r].delayed }
