// SPDX-License-Identifier: Apache-2.0

// Package footprint says how many bytes of Go heap a batch of traces, metrics,
// logs or profiles keeps alive, or will once it is decoded.
//
// It is not the protobuf size, from which the heap differs by a factor of 1 (one
// large attribute) to 22 (empty spans as pdata encodes them) and 112 (as an
// attacker does), and it is no measurement: it walks pdata's public API and adds
// up what the decoder allocated, from a table of struct sizes, the growth of
// appended slices and the allocator's size classes. The walk allocates nothing
// and costs less than computing the protobuf size.
//
// Wire and JSON come to the same figure from a request's bytes, so that it can be
// refused before it is decoded. They share the sizes, and know OTLP from one
// table of its messages. Wire takes about a tenth of the time that decoding
// does, JSON about a fifth.
//
// The batch is taken to have been decoded from OTLP protobuf, which copies every
// string out of the request and appends to slices one element at a time (packed
// numbers of fixed size excepted: they fit exactly). pdata shows lengths and no
// capacities or sharing, so the same figure is said of batches that came about
// otherwise: a clone fits more exactly and shares its strings with the original,
// and a slice emptied by RemoveIf keeps an array that nobody sees. Decoding JSON
// gives the same objects, but those of less than 16 bytes, which protobuf
// decoding packs, then lie scattered: some per cent more for common batches, up
// to 80 % for long lists of booleans. JSON alone says so.
//
// What the public API hides is not counted: values that stay an index into a
// profile's string table. Strings that a profile's resource and scope attributes
// share with its dictionary are counted each time, but not by JSON. What outlives
// a batch (pools, the request's bytes) is nobody's here.
//
// The price of a table is that it can become wrong when pdata or Go changes. The
// tests compare it with pdata's structs, the runtime's rounding and the live
// heap. It holds for 64-bit machines.
//
// All functions only read: they are safe for concurrent use as long as nobody
// changes the batch.
package footprint
