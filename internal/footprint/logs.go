// SPDX-License-Identifier: Apache-2.0

package footprint

import "go.opentelemetry.io/collector/pdata/plog"

// Logs returns the heap bytes that ld keeps alive.
func Logs(ld plog.Logs) int64 {
	return object(sizeRequest) + flat(sizeState) +
		tree(ld.ResourceLogs(), sizeResource, plog.ResourceLogs.ScopeLogs, logRecords)
}

func logRecords(sl plog.ScopeLogs) int64 {
	all := sl.LogRecords()
	n := all.Len()
	heap := pointed(n, sizeLogRecord)
	for i := range n {
		r := all.At(i)
		heap += value(r.Body()) + text(r.SeverityText()) + text(r.EventName()) + attributes(r.Attributes())
	}
	return heap
}
