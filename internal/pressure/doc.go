// SPDX-License-Identifier: Apache-2.0

// Package pressure answers how full the process is, beyond what leases hold: what ended leases left alive and
// whose it is, what is alive and nobody's, what Go can hold without losing itself in garbage collection, and
// when the kernel or a disk is about to run out.
//
// It is told of events (a lease ended, its data is gone, a collection ended, time passed) and keeps figures.
// It has no clock, starts no goroutine and reads no file: time and readings are passed in, so that all of it
// runs in virtual time. The two exceptions stand in files of their own: [OnGC] notices the end of a
// collection, and [RuntimeReader] reads what Go says about itself.
//
// Whether data is gone is known only at a garbage collection. Between two of them the books hold an estimate:
// of what ended since the last collection, the share that lately survived one; of what survived, what is
// left if it keeps being drained as fast as lately. The estimate errs towards "still there", and is replaced by
// the truth as collections go by. Therefore refusals may start one, which [Books.Refused] decides: where
// everything is refused nothing allocates, and Go would look again only after two minutes.
package pressure
