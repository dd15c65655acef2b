// SPDX-License-Identifier: Apache-2.0

package footprint

// requests are the export requests of OTLP 1.10, as pdata 1.71 decodes them.
var requests = [...]*message{
	TracesRequest:   messageOf(resources("Spans", sizeResource, item(2, "spans", sizeSpan, spanMessage))),
	MetricsRequest:  messageOf(resources("Metrics", sizeResource, pointedTo(2, "metrics", sizeMetric, metricMessage))),
	LogsRequest:     messageOf(resources("Logs", sizeResource, item(2, "logRecords", sizeLogRecord, logRecordMessage))),
	ProfilesRequest: messageOf(resourceProfiles, profilesDictionary),
}

var (
	resourceProfiles = resources("Profiles", sizeProfilesResource, pointedTo(2, "profiles", sizeProfile, profileMessage))

	profilesDictionary = embedded(2, "dictionary", dictionaryMessage)
)

// resources is a request's list of resources, by the word that the names of their lists end in. Each has scopes,
// and each scope its records.
func resources(signal string, size int, records field) field {
	scopes := messageOf(embedded(1, "scope", scopeMessage), records, plain(3, "schemaUrl", str))
	fields := []field{
		embedded(1, "resource", resourceMessage),
		pointedTo(2, "scope"+signal, sizeScope, scopes),
		plain(3, "schemaUrl", str),
	}
	if size == sizeResource {
		fields = append(fields, pointedTo(legacyField, "deprecatedScope"+signal, sizeScope, scopes))
	}
	return pointedTo(1, "resource"+signal, size, messageOf(fields...))
}

var (
	resourceMessage = messageOf(pairs(1, "attributes"), pointedTo(3, "entityRefs", sizeEntityRef, messageOf(
		plain(1, "schemaUrl", str),
		plain(2, "type", str),
		listOf(3, "idKeys", strs, texts),
		listOf(4, "descriptionKeys", strs, texts),
	)))
	scopeMessage = messageOf(plain(1, "name", str), plain(2, "version", str), pairs(3, "attributes"))
	empty        = messageOf()

	spanMessage = messageOf(
		plain(3, "traceState", str),
		plain(5, "name", str),
		pairs(9, "attributes"),
		pointedTo(11, "events", sizeSpanEvent, messageOf(plain(2, "name", str), pairs(3, "attributes"))),
		pointedTo(13, "links", sizeSpanLink, messageOf(plain(3, "traceState", str), pairs(4, "attributes"))),
		embedded(15, "status", messageOf(plain(2, "message", str))),
	)

	logRecordMessage = messageOf(
		plain(3, "severityText", str),
		embedded(5, "body", anyValue),
		pairs(6, "attributes"),
		plain(12, "eventName", str),
	)

	metricMessage = messageOf(
		plain(1, "name", str),
		plain(2, "description", str),
		plain(3, "unit", str),
		points(5, "gauge", sizePoints, sizeNumberPoint, numberPoint),
		points(7, "sum", sizeTemporalPoints, sizeNumberPoint, numberPoint),
		points(9, "histogram", sizeTemporalPoints, sizeHistogramPoint, messageOf(
			fixed64(6, "bucketCounts"),
			fixed64(7, "explicitBounds"),
			inline(8, "exemplars", exemplars, exemplarMessage),
			pairs(9, "attributes"),
		)),
		points(10, "exponentialHistogram", sizeTemporalPoints, sizeExponentialPoint, messageOf(
			pairs(1, "attributes"),
			embedded(8, "positive", buckets),
			embedded(9, "negative", buckets),
			inline(11, "exemplars", exemplars, exemplarMessage),
		)),
		points(11, "summary", sizePoints, sizeSummaryPoint, messageOf(
			pointedTo(6, "quantileValues", sizeQuantile, empty),
			pairs(7, "attributes"),
		)),
		pairs(12, "metadata"),
	)
	numberPoint = messageOf(
		numeric(4, "asDouble", sizeNumberValue),
		inline(5, "exemplars", exemplars, exemplarMessage),
		numeric(6, "asInt", sizeNumberValue),
		pairs(7, "attributes"),
	)
	exemplarMessage = messageOf(
		numeric(3, "asDouble", sizeNumberValue),
		numeric(6, "asInt", sizeNumberValue),
		pairs(7, "filteredAttributes"),
	)
	buckets = messageOf(listOf(2, "bucketCounts", varints, int64s))

	profileMessage = messageOf(
		item(2, "samples", sizeSample, messageOf(
			listOf(2, "attributeIndices", varints, int32s),
			listOf(4, "values", varints, int64s),
			fixed64(5, "timestampsUnixNano"),
		)),
		plain(9, "originalPayloadFormat", str),
		plain(10, "originalPayload", octets),
		listOf(11, "attributeIndices", varints, int32s),
	)
	dictionaryMessage = messageOf(
		pointedTo(1, "mappingTable", sizeMapping, messageOf(listOf(5, "attributeIndices", varints, int32s))),
		pointedTo(2, "locationTable", sizeLocation, messageOf(
			pointedTo(3, "lines", sizeLine, empty),
			listOf(4, "attributeIndices", varints, int32s),
		)),
		pointedTo(3, "functionTable", sizeFunction, empty),
		pointedTo(4, "linkTable", sizeLink, empty),
		listOf(stringTableField, "stringTable", strs, texts),
		pointedTo(6, "attributeTable", sizeAttributeUnit, messageOf(embedded(2, "value", anyValue))),
		pointedTo(7, "stackTable", sizeStack, messageOf(listOf(1, "locationIndices", varints, int32s))),
	)
)

// points is the data of a metric: its type's object, the metric of that type and the points.
func points(number int, name string, size, point int, of *message) field {
	return boxed(number, name, messageOf(item(1, "dataPoints", point, of)), sizeData, size)
}

func fixed64(number int, name string) field { return listOf(number, name, fixed, int64s) }
