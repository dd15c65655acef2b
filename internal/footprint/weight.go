// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"errors"
	"math"
)

// Signal says which of OTLP's export requests a body is.
type Signal uint8

// The signals, by the names of their requests.
const (
	TracesRequest Signal = iota
	MetricsRequest
	LogsRequest
	ProfilesRequest
)

// Weight is what a body will be once decoded.
type Weight struct {
	Memory  int64 // bytes of heap
	Items   int64 // spans, data points, log records or samples
	AtLeast bool  // the walk ended early: there is more of both
}

var (
	errNoRequest = errors.New("the body is no OTLP export request")
	errNested    = errors.New("the body nests attribute values deeper than 100 messages")
)

// failure is why a walk cannot be completed. It is no error, since a walk that an error is returned from would
// be moved to the heap, with all that it points to.
type failure uint8

const (
	none failure = iota
	noRequest
	nested
)

var failures = [...]error{noRequest: errNoRequest, nested: errNested}

// maxDepth is how deep pdata follows values in protobuf, each array, map, pair and value being a message. In
// JSON it would follow them until the stack of the goroutine, and with it the process, ends.
const maxDepth = 100

// Wire weighs an OTLP export request in protobuf without decoding it. Of the encoding that pdata gives a batch it
// says exactly what the walk over the decoded batch says; of any other that pdata decodes never less, since what
// comes twice is counted twice, though only the last one lives. (Values that stay an index into a string table
// are counted too, which pdata's API hides.) Where most is positive, the walk ends once Memory passes it.
//
// It takes time linear in the body's length and allocates nothing. An error means that decoding fails too; that
// there is none does not mean that it succeeds.
func Wire(s Signal, body []byte, most int64) (Weight, error) {
	w := walk{memory: bare(s), most: bound(most)}
	if s == ProfilesRequest {
		return wireProfiles(w, body)
	}
	return w.end(w.message(requests[s], body, 0))
}

// WorstCase is the heap that no request in protobuf of size bytes exceeds once decoded, so that one for which
// there is room need not be walked. Empty records reach it: two bytes on the wire each, and on the heap the
// largest struct of the signal and at worst two pointers in the list, which for spans is 112 times as much.
//
// Of profiles whose attributes share strings the walks say more than that, since they count them each time.
func WorstCase(s Signal, size int) int64 {
	return bare(s) + int64(size)*(object(largest[s])+object(2*pointers.elem))/2
}

var largest = [...]int{
	TracesRequest:   sizeSpan,
	MetricsRequest:  sizeExponentialPoint,
	LogsRequest:     sizeLogRecord,
	ProfilesRequest: sizeProfile,
}

// bare is what a request without content takes.
func bare(s Signal) int64 {
	if s == ProfilesRequest {
		return object(sizeProfilesRequest) + flat(sizeState)
	}
	return object(sizeRequest) + flat(sizeState)
}

func bound(most int64) int64 {
	if most <= 0 {
		return math.MaxInt64
	}
	return most
}
