// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func BenchmarkTraces(b *testing.B) {
	td := ptrace.NewTraces()
	fillSpans(td, 512, 8)
	compare(b, tracesSignal, td)
}

func BenchmarkEmptySpans(b *testing.B) {
	td := ptrace.NewTraces()
	fillSpans(td, 10_000, 0)
	compare(b, tracesSignal, td)
}

func BenchmarkLogs(b *testing.B) {
	ld := plog.NewLogs()
	fillLogs(ld, 512, 100)
	compare(b, logsSignal, ld)
}

func BenchmarkMetrics(b *testing.B) {
	md := pmetric.NewMetrics()
	fillMetrics(md, 2048, 4)
	compare(b, metricsSignal, md)
}

// compare shows what weighing costs, decoded and undecoded, beside computing the
// protobuf size of the same batch and beside decoding it.
func compare[T any](b *testing.B, s signal[T], built T) {
	wire, err := s.marshal(built)
	require.NoError(b, err)
	json, err := s.toJSON(built)
	require.NoError(b, err)
	decoded, err := s.unmarshal(wire)
	require.NoError(b, err)

	b.Run("footprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.weigh(decoded)
		}
	})
	b.Run("protosize", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.protoSize(decoded)
		}
	})
	b.Run("wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Wire(s.is, wire, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := JSON(s.is, json, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decodejson", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.fromJSON(json); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.unmarshal(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}
