// SPDX-License-Identifier: Apache-2.0

// Package pool answers two questions: who holds how many bytes and slots of a process, and who is next.
//
// It grants a slot and the bytes of a batch together, so nobody sits on one of them while waiting for the
// other. What fits is granted at once, unless somebody who waits could be served first; what does not fit
// waits in a line that is bounded in waiters, in bytes and in time, and is served first in, first out.
// The price of that order is that a large batch at the head holds back small ones behind it: they would
// fit now, but letting them by would let them do so for ever.
//
// Two things go around the order. A holder that asks for more is served before anybody who holds nothing,
// since what it holds comes back only when it has finished. And whoever waits for a full [Gate], a ceiling
// of its own making, is passed over without losing its place.
//
// The pool is not a meter: it believes what it is told about sizes. It knows no telemetry and no protocol,
// and it never takes back what it granted. When the capacity shrinks below what is held, or somebody
// takes bytes that exist already, the difference is a debt that new grants wait for.
package pool
