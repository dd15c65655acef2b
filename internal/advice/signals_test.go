// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignals(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want map[string]string
	}{
		"the paths of a receiver that sets none": {
			yaml: `
receivers: {otlp: {protocols: {http: {}}}}
service: {pipelines: {traces: {receivers: [otlp]}, metrics/a: {receivers: [otlp]}, logs: {receivers: [otlp]}, profiles: {receivers: [otlp]}}}`,
			want: map[string]string{
				"/v1/traces": "traces", "/v1/metrics": "metrics", "/v1/logs": "logs", "/v1development/profiles": "profiles",
			},
		},
		"paths that are set": {
			yaml: `
receivers: {otlp/a: {protocols: {http: {traces_url_path: /spans, metrics_url_path: points, logs_url_path: /a/b}}}}
service: {pipelines: {traces: {receivers: [otlp/a]}, metrics: {receivers: [otlp/a]}, logs: {receivers: [otlp/a]}}}`,
			want: map[string]string{"/spans": "traces", "/points": "metrics", "/a/b": "logs"},
		},
		"a receiver listens for the signals of its pipelines": {
			yaml: `
receivers: {otlp: {protocols: {http: {}}}, otlp/unused: {protocols: {http: {traces_url_path: /unused}}}}
service: {pipelines: {logs/a: {receivers: [otlp]}, logs/b: {receivers: [otlp]}, traces: {receivers: [zipkin]}}}`,
			want: map[string]string{"/v1/logs": "logs"},
		},
		"a receiver without HTTP": {
			yaml: `
receivers: {otlp: {protocols: {grpc: {}, http: }}, otlp/b: {protocols: {grpc: {}}}}
service: {pipelines: {logs: {receivers: [otlp, otlp/b]}}}`,
			want: map[string]string{},
		},
		"other receivers have other paths": {
			yaml: `
receivers: {other: {protocols: {http: {logs_url_path: /logs}}}}
service: {pipelines: {logs: {receivers: [other]}}}`,
			want: map[string]string{},
		},
		"one path with several signals has the heaviest": {
			yaml: `
receivers:
  otlp/traces: {protocols: {http: {traces_url_path: /4}}}
  otlp/metrics: {protocols: {http: {metrics_url_path: /4}}}
  otlp/metrics2: {protocols: {http: {metrics_url_path: /v1development/profiles}}}
  otlp/profiles: {protocols: {http: {}}}
  otlp/logs: {protocols: {http: {logs_url_path: /4}}}
  otlp/logs2: {protocols: {http: {logs_url_path: /v1/metrics}}}
  otlp/plain: {protocols: {http: {}}}
service: {pipelines: {
  logs: {receivers: [otlp/logs, otlp/logs2]},
  metrics: {receivers: [otlp/metrics, otlp/metrics2, otlp/plain]},
  profiles: {receivers: [otlp/profiles]},
  traces: {receivers: [otlp/traces]}}}`,
			want: map[string]string{"/4": "traces", "/v1development/profiles": "metrics", "/v1/metrics": "metrics"},
		},
		"profiles are heavier than logs": {
			yaml: `
receivers: {otlp/a: {protocols: {http: {}}}, otlp/b: {protocols: {http: {logs_url_path: /v1development/profiles}}}}
service: {pipelines: {logs: {receivers: [otlp/b]}, profiles: {receivers: [otlp/a]}}}`,
			want: map[string]string{"/v1development/profiles": "profiles"},
		},
		"nothing at all": {yaml: `{}`, want: map[string]string{}},
		"shapes that no collector has": {
			yaml: `
receivers: {otlp: {protocols: [http]}, otlp/b: 5, otlp/c: {protocols: {http: {traces_url_path: [a]}}}}
service: {pipelines: {traces: {receivers: [otlp, otlp/b, otlp/c, otlp/d]}, logs: 5, metrics: {receivers: {otlp/c: }}}}`,
			want: map[string]string{"/v1/traces": "traces"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, read(t, tt.yaml, false).Signals)
		})
	}
}

func TestStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want bool
	}{
		"absent":  {"receivers: {otlp: {protocols: {grpc: {}}}}", false},
		"default": {"receivers: {otlp: {protocols: {grpc: {max_concurrent_streams: 0}}}}", false},
		"set":     {"receivers: {otlp: {protocols: {grpc: {max_concurrent_streams: 100}}}}", true},
		"nothing": {"{}", false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, read(t, tt.yaml, false).Streams)
		})
	}
}

func TestMessage(t *testing.T) {
	const here = "middlewares: [{id: other}, {id: governor}]"
	for name, tt := range map[string]struct {
		yaml string
		want int64
	}{
		"nothing":         {"{}", 0},
		"no middleware":   {"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 9}}}}", 0},
		"another's":       {"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 9, middlewares: [{id: governor/b}]}}}}", 0},
		"absent":          {"receivers: {otlp: {protocols: {grpc: {" + here + "}, http: {" + here + "}}}}", 4 << 20},
		"default":         {"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 0, " + here + "}}}}", 4 << 20},
		"set":             {"receivers: {otlp: {protocols: {grpc: {max_recv_msg_size_mib: 1, " + here + "}, http: {" + here + "}}}}", 1 << 20},
		"by two":          {"receivers: {a: {max_recv_msg_size_mib: 7, " + here + "}, b: {grpc: {max_recv_msg_size_mib: 5, " + here + "}}}", 7 << 20},
		"what it is not":  {"receivers: {a: {max_recv_msg_size_mib: many, " + here + "}}", 4 << 20},
		"what nobody has": {"receivers: {a: [5], grpc: {middlewares: governor}}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, read(t, tt.yaml, false).Message)
		})
	}
}
