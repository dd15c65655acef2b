// SPDX-License-Identifier: Apache-2.0

package footprint

// Bytes of pdata's structs, before rounding to a size class. Ids are arrays
// inside their struct and optional numbers are marked by a bit of it: neither is
// an object of its own.
const (
	sizeState           = 8
	sizeRequest         = 24 // of traces, metrics and logs
	sizeProfilesRequest = 192

	sizeResource         = 120 // of traces, metrics and logs
	sizeProfilesResource = 96
	sizeScope            = 104
	sizeEntityRef        = 80

	// A value is two words that point to an object of the value's type.
	sizeKeyValue    = 40
	sizeAnyValue    = 16
	sizeStringValue = 16
	sizeBytesValue  = 24
	sizeNumberValue = 8 // also of points and exemplars
	sizeBoolValue   = 1
	sizeIndexValue  = 4
	sizeListValue   = 8 // of a map or slice: points to the list
	sizeValueList   = 24

	sizeSpan      = 200
	sizeSpanEvent = 56
	sizeSpanLink  = 72

	sizeLogRecord = 128

	sizeMetric           = 88
	sizeData             = 8  // points to the metric of its type
	sizePoints           = 24 // a gauge or a summary
	sizeTemporalPoints   = 32 // a sum or a histogram of either kind
	sizeNumberPoint      = 88
	sizeHistogramPoint   = 160
	sizeExponentialPoint = 192
	sizeSummaryPoint     = 88
	sizeQuantile         = 16
	sizeExemplar         = 72

	sizeProfile       = 152
	sizeSample        = 80
	sizeMapping       = 56
	sizeLocation      = 64
	sizeLine          = 24
	sizeFunction      = 24
	sizeLink          = 24
	sizeStack         = 24
	sizeAttributeUnit = 24
)
