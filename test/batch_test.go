// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
)

const mib = 1 << 20

// batch is what a client sends: items that can be told apart, and nameless ones, little on the wire and much
// in memory, that make it as heavy as a story needs.
type batch struct {
	ids    []string
	weight int // bytes, roughly
}

// one is a batch of a single item and its weight.
func one(id string, weight int) batch { return batch{[]string{id}, weight} }

// all returns the ids of all items, of which a nameless one takes so many bytes.
func (b batch) all(size int) []string {
	return append(slices.Clone(b.ids), make([]string, b.weight/size)...)
}

// items is a batch of n items whose ids begin with prefix.
func items(n int, prefix string) batch {
	b := batch{ids: make([]string, n)}
	for i := range b.ids {
		b.ids[i] = fmt.Sprint(prefix, "-", i)
	}
	return b
}

// request is an OTLP export request.
type request interface {
	MarshalProto() ([]byte, error)
	MarshalJSON() ([]byte, error)
}

// signal is what differs between the kinds of telemetry to who sends and receives it.
type signal struct {
	name string
	path string // over HTTP
	make func(batch) request
	send func(context.Context, *grpc.ClientConn, request) error
}

var (
	traces = signal{
		"traces", "/v1/traces",
		func(b batch) request {
			data := ptrace.NewTraces()
			r := data.ResourceSpans().AppendEmpty()
			spans := r.ScopeSpans().AppendEmpty().Spans()
			for _, id := range b.all(217) {
				spans.AppendEmpty().SetName(id)
			}
			return ptraceotlp.NewExportRequestFromTraces(data)
		},
		func(ctx context.Context, conn *grpc.ClientConn, r request) error {
			_, err := ptraceotlp.NewGRPCClient(conn).Export(ctx, r.(ptraceotlp.ExportRequest))
			return err
		},
	}
	metrics = signal{
		"metrics", "/v1/metrics",
		func(b batch) request {
			data := pmetric.NewMetrics()
			r := data.ResourceMetrics().AppendEmpty()
			ms := r.ScopeMetrics().AppendEmpty().Metrics()
			for _, id := range b.all(249) {
				m := ms.AppendEmpty()
				m.SetName(id)
				m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
			}
			return pmetricotlp.NewExportRequestFromMetrics(data)
		},
		func(ctx context.Context, conn *grpc.ClientConn, r request) error {
			_, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, r.(pmetricotlp.ExportRequest))
			return err
		},
	}
	logs = signal{
		"logs", "/v1/logs",
		func(b batch) request {
			data := plog.NewLogs()
			r := data.ResourceLogs().AppendEmpty()
			records := r.ScopeLogs().AppendEmpty().LogRecords()
			for _, id := range b.all(153) {
				records.AppendEmpty().Body().SetStr(id)
			}
			return plogotlp.NewExportRequestFromLogs(data)
		},
		func(ctx context.Context, conn *grpc.ClientConn, r request) error {
			_, err := plogotlp.NewGRPCClient(conn).Export(ctx, r.(plogotlp.ExportRequest))
			return err
		},
	}
	profiles = signal{
		"profiles", "/v1development/profiles",
		func(b batch) request {
			data := pprofile.NewProfiles()
			r := data.ResourceProfiles().AppendEmpty()
			ps := r.ScopeProfiles().AppendEmpty().Profiles()
			for _, id := range b.all(265) {
				p := ps.AppendEmpty()
				p.SetOriginalPayloadFormat(id)
				p.Samples().AppendEmpty().Values().Append(1)
			}
			return pprofileotlp.NewExportRequestFromProfiles(data)
		},
		func(ctx context.Context, conn *grpc.ClientConn, r request) error {
			_, err := pprofileotlp.NewGRPCClient(conn).Export(ctx, r.(pprofileotlp.ExportRequest))
			return err
		},
	}
	signals = []signal{traces, metrics, logs, profiles}
)

// idsOf returns the ids, nameless ones too, of the items in what a server received.
func idsOf(r request) []string {
	var ids []string
	switch r := r.(type) {
	case ptraceotlp.ExportRequest:
		for _, rs := range r.Traces().ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					ids = append(ids, span.Name())
				}
			}
		}
	case pmetricotlp.ExportRequest:
		for _, rm := range r.Metrics().ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					ids = append(ids, m.Name())
				}
			}
		}
	case plogotlp.ExportRequest:
		for _, rl := range r.Logs().ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					ids = append(ids, record.Body().AsString())
				}
			}
		}
	case pprofileotlp.ExportRequest:
		for _, rp := range r.Profiles().ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					ids = append(ids, p.OriginalPayloadFormat())
				}
			}
		}
	}
	return ids
}

func TestBatchesAreReadAsTheyWereMade(t *testing.T) {
	for _, s := range signals {
		b := items(3, s.name)
		got := idsOf(s.make(b))
		if fmt.Sprint(got) != fmt.Sprint(b.ids) {
			t.Errorf("%s: %v, want %v", s.name, got, b.ids)
		}
	}
}
