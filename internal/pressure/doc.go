// SPDX-License-Identifier: Apache-2.0

// Package pressure answers how full the process is, beyond what leases hold: what ended leases left alive and
// whose it is, what is alive and nobody's, what Go can hold without losing itself in garbage collection, and
// when the heap, the kernel or a disk is about to run out.
//
// It is told of events (a lease ended, its data is gone, a collection ended, time passed) and keeps figures. It
// has no clock, starts no goroutine and no collection, and reads no file: time and readings are passed in, so that
// all of it runs in virtual time. Two things stand beside that, in files of their own: [OnGC] notices the end of a
// collection, and [RuntimeReader] reads what Go says about itself.
//
// Whether data is gone is known only at a garbage collection. Between two of them [Books] hold an estimate: of
// what ended since the last one, the share that lately survived one; of what survived, what is left if it
// keeps being drained as fast as lately. Bad news is believed at once and good news by and by. What is believed
// to be dead and may not be is limited by [Books.Room], so that an estimate never costs the process. And where
// everything is refused nothing allocates, and Go would look again only after two minutes: therefore
// [Books.Refused] asks for a collection when refusals rest on one that is stale. That is its price, bounded as a
// share of the processors.
//
// [Levels] and [Disk] turn figures into states, with hysteresis.
package pressure
