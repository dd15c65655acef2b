// SPDX-License-Identifier: Apache-2.0

// Package admission is the contract between whoever holds telemetry in memory and whoever decides how
// much of it a process can hold: a [Governor] admits batches, a [Lease] is what an admitted batch holds,
// an [Error] is the answer to one that was not admitted.
//
// A receiver, processor or exporter that wants to be governed needs this package and nothing else of
// this module: it finds an extension that implements [Governor], asks [Governor.Admit] before it works
// on a batch and releases the lease afterwards. Whoever calls on passes the lease along with
// [ContextWithLease], so that nobody further down counts the same bytes again.
//
// Every refusal is typed. The list of reasons is closed (see [Reason]); each has one gRPC code, one
// answer to "may the same batch be sent again", and a message that names the limit, what was observed
// and what is allowed. What stock OTLP clients retry is decided by that code together with RetryInfo, so
// both are part of the contract.
package admission
