// SPDX-License-Identifier: Apache-2.0

// Package lifetime says when the data of a batch of traces, metrics, logs or
// profiles is really gone: not when a consumer returns, but when no queue, batcher
// or cache behind it refers to the data any more and the garbage collector has
// noticed.
//
// A batch is a tree that others move, merge and split, so the tree tells nothing.
// What stays itself on most ways is the object of a record: slices move pointers
// to it. The last record of a batch is followed, because the splits of the batch
// processor and of exporters move records out from the front, one by one into other
// objects, and leave the last where it is. Record means span, log record, data point
// or sample, and not metric or profile: a MoveTo of these gives another object the
// same points or samples.
//
// The price is that one record speaks for all:
//
//   - Too late, if it is kept while others are gone: the first parts of a batch that
//     was split count until its end has been sent.
//   - Too early, if it goes before others: a processor dropped it, or copied the
//     batch (CopyTo, also a fan-out's clones) and let go of the original, or a
//     persistent queue encoded it. What is left then is nobody's: the heap shows
//     that it is there and not whose it is.
//   - Never, if it has no record, if pdata hides its objects in another way than
//     this package knows, or if pdata pools them (the feature gate
//     pdata.useProtoPooling), where an object outlives the batch and becomes part
//     of another. Such a batch is nobody's from the start.
//
// What counts is the garbage collector's own word, so the answer comes with the
// first collection that begins after the data was dropped. None is started here.
package lifetime
