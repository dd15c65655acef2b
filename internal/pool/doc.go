// SPDX-License-Identifier: Apache-2.0

// Package pool answers two questions: who holds how many bytes and slots of a process, and who is next.
//
// It grants a slot and the bytes of a batch together, so nobody sits on one of them while waiting for the
// other. What fits is granted at once, unless somebody who waits should go first; what does not fit waits
// in a line that is bounded in waiters, in bytes and in time.
//
// The line is served by dominant share: next is the account that holds the smallest share of bytes or
// slots, whichever is larger, for its weight; within an account it is first in, first out. A waiter that
// needs more than is free lets others by, until half of its time has passed: from then on whatever would take
// an account above its fair share is held back for it, if it stays within its own. When the line is full,
// whoever holds and waits for most loses its youngest waiter to somebody who claims less. Accounts that
// nobody vouches for are one in all of this, so that nobody gains a share by inventing names.
//
// The price is that an account above its share may wait although there is room, and that a batch larger than
// its account's whole share is let in only by chance: no room is made for it, in the pool or in line.
//
// Two things go around the order. A holder within its share that asks for more is served before anybody
// who holds nothing, since what it holds comes back only when it has finished. And whoever waits for a full
// [Gate], a ceiling of its own making, is passed over without losing its place.
//
// What an account's own ceilings forbid is refused at once: it is its own doing, and waiting would only
// hide it.
//
// The pool is not a meter: it believes what it is told about sizes. It knows no telemetry and no protocol,
// and it never takes back what it granted. When the capacity shrinks below what is held, or somebody
// takes bytes that exist already, the difference is a debt that new grants wait for.
package pool
