// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml     string
		holders  []string
		warnings []string
		headers  bool
	}{
		"headers that are not handed on": {
			headers: true, yaml: `
exporters: {nop: }
receivers:
  otlp:
    protocols:
      grpc: {include_metadata: true, middlewares: [{id: governor}]}
      http: {endpoint: x, middlewares: [{id: other}, {id: governor}]}
  otlp/b: {protocols: {grpc: {include_metadata: false, middlewares: [{id: governor}]}, http: }}
  otlp/unused: {protocols: {grpc: {}}}
service: {pipelines: {logs: {receivers: [otlp, otlp/b, other], processors: [limiter], exporters: [nop]}}}`,
			warnings: []string{
				"receiver otlp does not hand on the headers of http requests, so all who send them are the default tenant;" +
					" set protocols::http::include_metadata to true",
				"receiver otlp/b does not hand on the headers of grpc requests, so all who send them are the default tenant;" +
					" set protocols::grpc::include_metadata to true",
			},
		},
		"receivers without the door": {
			yaml: `
exporters: {nop: }
receivers:
  otlp: {protocols: {grpc: {middlewares: [{id: other}]}, http: }}
  otlp/b: {protocols: {grpc: {middlewares: [{id: governor}]}, http: {endpoint: x}}}
service: {pipelines: {logs: {receivers: [otlp, otlp/b], processors: [limiter], exporters: [nop]}}}`,
			warnings: []string{
				"receiver otlp does not name governor among its middlewares for grpc, so requests are refused only once they" +
					" are decoded; add {id: governor} to protocols::grpc::middlewares",
				"receiver otlp/b does not name governor among its middlewares for http, so requests are refused only once they" +
					" are decoded; add {id: governor} to protocols::http::middlewares",
			},
		},
		"nothing keeps data": {yaml: `
exporters: {debug: , nop: , otlp: {sending_queue: null}, otlphttp: {sending_queue: {wait_for_result: true}}}
service: {pipelines: {
  traces: {receivers: [otlp], processors: [limiter], exporters: [debug, nop, otlp, otlphttp]}}}`},
		"queues that are on by default": {
			yaml: `
exporters: {otlp: {endpoint: x}, otlphttp/b: }
service: {pipelines: {traces: {receivers: [otlp], processors: [limiter], exporters: [otlp, otlphttp/b]}}}`,
			holders: []string{"exporter otlp", "exporter otlphttp/b"},
		},
		"queues that are configured": {
			yaml: `
exporters: {otlp/a: {sending_queue: {queue_size: 5}}, debug/b: {sending_queue: {storage: disk}}, otlp/c: {sending_queue: {wait_for_result: false}}}
service: {pipelines: {traces: {receivers: [otlp], processors: [limiter], exporters: [otlp/a, debug/b, otlp/c]}}}`,
			holders: []string{"exporter debug/b", "exporter otlp/a", "exporter otlp/c"},
		},
		"exporters that nobody knows": {
			yaml: `
exporters: {kafka: }
service: {pipelines: {traces: {receivers: [otlp], processors: [limiter], exporters: [kafka]}}}`,
			holders: []string{"exporter kafka"},
		},
		"what no pipeline reaches does not count": {yaml: `
exporters: {debug: , otlp: }
processors: {batch: }
connectors: {spanmetrics: }
service: {pipelines: {traces: {receivers: [otlp], processors: [limiter], exporters: [debug]}}}`},
		"processors that collect": {
			yaml: `
exporters: {nop: }
service: {pipelines: {
  traces: {receivers: [otlp], processors: [limiter, tail_sampling], exporters: [nop]},
  traces/b: {receivers: [otlp], processors: [limiter/b, groupbytrace/x], exporters: [nop]},
  logs: {receivers: [otlp], processors: [limiter, batch], exporters: [nop]}}}`,
			holders: []string{"processor batch", "processor groupbytrace/x", "processor tail_sampling"},
		},
		"a limiter after a batcher": {
			yaml: `
exporters: {nop: }
service: {pipelines: {logs/a: {receivers: [otlp], processors: [batch/first, limiter/x], exporters: [nop]}}}`,
			holders: []string{"processor batch/first"},
			warnings: []string{"pipeline logs/a has batch/first before limiter/x: senders are answered before their" +
				" batch is admitted, and a refusal is a loss; put the limiter first"},
		},
		"a pipeline without a limiter": {
			yaml: `
exporters: {nop: }
service: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}`,
			holders:  []string{"pipeline metrics without a limiter"},
			warnings: []string{"pipeline metrics has no limiter: what becomes of its batches is not followed, and without the door they are not governed; put one first"},
		},
		"a pipeline behind a connector that passes on": {yaml: `
exporters: {nop: }
connectors: {forward: }
service: {pipelines: {
  traces/in: {receivers: [otlp], processors: [limiter], exporters: [forward]},
  traces/out: {receivers: [forward], exporters: [nop]}}}`},
		"a pipeline behind a connector that may keep": {
			yaml: `
exporters: {nop: }
connectors: {spanmetrics: }
service: {pipelines: {
  traces: {receivers: [otlp], processors: [limiter], exporters: [spanmetrics]},
  metrics: {receivers: [spanmetrics], exporters: [nop]}}}`,
			holders: []string{"connector spanmetrics"},
		},
		"nothing at all": {yaml: `{}`},
		"shapes that no collector has": {
			yaml: `
exporters: [what]
service: {pipelines: {traces: 5, logs: {receivers: no, processors: {a: b}, exporters: [7]}}}`,
			holders: []string{"exporter 7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, tt.yaml, tt.headers)
			require.Equal(t, tt.holders, got.Holders)
			require.Equal(t, tt.warnings, got.Warnings)
		})
	}
}

func read(t *testing.T, yaml string, headers bool) Advice {
	t.Helper()
	r, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := r.AsConf()
	require.NoError(t, err)
	return Read(conf, "governor", headers)
}
