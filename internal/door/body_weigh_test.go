// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otel-governor/otel-governor/internal/footprint"
)

func TestABodyIsWeighedByItsSignalAndEncoding(t *testing.T) {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 100 {
		records.AppendEmpty()
	}
	request := plogotlp.NewExportRequestFromLogs(logs)
	protobuf, err := request.MarshalProto()
	require.NoError(t, err)
	json, err := request.MarshalJSON()
	require.NoError(t, err)
	heap, err := footprint.Wire(footprint.LogsRequest, protobuf, 0)
	require.NoError(t, err)
	require.Greater(t, heap.Memory, 10*int64(len(protobuf)), "empty records")

	list := []byte("\n [{},{},{}]")
	spans := []byte("\x0a\x02\x5a\x00\x0a\x00")
	thrift := []byte{12, 0, 0, 0, 3, 0, 0, 0}

	for name, tt := range map[string]struct {
		path, media   string
		body          []byte
		memory, items int64
	}{
		"protobuf":         {"/v1/logs", protobufType, protobuf, heap.Memory, 100},
		"JSON":             {"/v1/logs", jsonType, json, heap.Memory, 100},
		"neither":          {"/v1/logs", thriftType, json, 6 * int64(len(json)), 0},
		"unknown signal":   {"/api/v2/spans", jsonType, json, 6 * int64(len(json)), 0},
		"Zipkin JSON":      {"/api/v2/spans", jsonType, list, footprint.ZipkinJSON(list), 0},
		"of any type":      {"/v1/logs", "text/plain", list, footprint.ZipkinJSON(list), 0},
		"Zipkin protobuf":  {"/api/v2/spans", protobufType, spans, footprint.ZipkinProtobuf(spans), 0},
		"Zipkin thrift":    {"/api/v1/spans", thriftType, thrift, footprint.ZipkinThrift(thrift), 0},
		"another thrift":   {"/api/traces", thriftType, thrift, 6 * int64(len(thrift)), 0},
		"not protobuf":     {"/v1/logs", protobufType, []byte("telemetry, of no use"), footprint.ZipkinProtobuf([]byte("telemetry, of no use")), 0},
		"cut short":        {"/v1/logs", protobufType, protobuf[:len(protobuf)-1], 6 * int64(len(protobuf)-1), 0},
		"JSON, not a list": {"/api/v2/spans", jsonType, []byte("{"), 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(string(tt.body)))
			r.Header.Set("Content-Type", tt.media)
			w := httptest.NewRecorder()
			h.HTTPHandler(http.HandlerFunc(receiver)).ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code)
			asked := h.clerk.only(t).request
			if name == "JSON" { // some more, see package footprint
				require.GreaterOrEqual(t, asked.Memory, tt.memory)
			} else {
				require.Equal(t, tt.memory, asked.Memory)
			}
			require.Equal(t, tt.items, asked.Items)
			require.EqualValues(t, len(tt.body), asked.WireSize)
			h.requireEmpty(t)
		})
	}
}

func TestABodyWhoseWorstCaseIsEasilyHadIsNotWalked(t *testing.T) {
	for media, want := range map[string]int64{
		protobufType: footprint.WorstCase(footprint.LogsRequest, 2),
		jsonType:     0, // its decoder is not to be trusted with everything
	} {
		h := newHouse(t)
		h.Ease = func(context.Context) Ease { return Ease{Worst: 1 << 20} }
		r := httptest.NewRequest(http.MethodPost, "/v1/logs", strings.NewReader("{}"))
		r.Header.Set("Content-Type", media)
		h.HTTPHandler(http.HandlerFunc(receiver)).ServeHTTP(httptest.NewRecorder(), r)
		if got := h.clerk.only(t).request.Memory; want != 0 {
			require.Equal(t, want, got)
		} else {
			require.Less(t, got, footprint.WorstCase(footprint.LogsRequest, 2))
		}
	}
}

func TestJSONThatWouldOverflowTheDecodersStackIsNotHandedOn(t *testing.T) {
	h := newHouse(t)
	nested := strings.Repeat(`{"arrayValue":{"values":[`, 100_000)
	r := httptest.NewRequest(http.MethodPost, "/v1/logs", strings.NewReader(
		`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":`+nested))
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	h.HTTPHandler(never(t)).ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, jsonType, w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "cannot be decoded")
	require.Empty(t, h.clerk.asked)
	h.requireEmpty(t)
}
