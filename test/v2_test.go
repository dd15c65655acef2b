// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/vm"
)

// inMachine is what the default gateway has beside its own configuration in the machine. It resolves no
// names, of which the machine has none.
const inMachine = `
extensions: {governor: {memory: {refresh_interval: 100ms}}}
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:4317'}, http: {endpoint: '127.0.0.1:4318'}}}}
service:
  telemetry:
    logs: {encoding: json}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: 8888}}}}]}
`

// TestV2LimitsGovernInAMachine runs the collector below cgroup v2 with a real kernel. Probes that version 1 does
// not offer are part of it.
func TestV2LimitsGovernInAMachine(t *testing.T) {
	cache, err := vm.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.Available(cache); err != nil {
		t.Skipf("skipped, not passed: %v", err)
	}
	script, err := os.ReadFile("testdata/v2.sh")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := logs.make(items(3, "in the machine")).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	result, err := vm.Machine{
		Script:  string(script),
		Files:   map[string]string{"/bin/collector": collectorBinary(t), "/gateway.yaml": "../testdata/gateway.yaml"},
		Texts:   map[string]string{"/machine.yaml": inMachine, "/batch.json": string(batch)},
		Timeout: 4 * time.Minute,
	}.Run(t.Context(), cache, t.Output())
	if err != nil {
		t.Fatalf("after %v: %v", result.Elapsed, err)
	}
	t.Logf("the machine ran for %v", result.Elapsed.Round(10*time.Millisecond))

	for key, want := range map[string]struct{ limit, pool int64 }{
		"sized":   {384 * mib, 301989888}, // memory.high of the leaf
		"lowered": {320 * mib, 251658240}, // memory.max of the leaf
		"raised":  {512 * mib, 402653184}, // memory.max of the parent
	} {
		var l line
		d := json.NewDecoder(strings.NewReader(result.Values[key]))
		d.UseNumber()
		if err := d.Decode(&l); err != nil {
			t.Errorf("%s: %v: %q", key, err, result.Values[key])
			continue
		}
		if l.bytes("pool") != want.pool || l.bytes("limit") != want.limit || l.text("source") != "cgroup_v2" || l.text("fraction") != "0.75" {
			t.Errorf("%s: %v, want pool %d, limit %d, source cgroup_v2 and fraction 0.75", key, l, want.pool, want.limit)
		}
	}
	for key, want := range map[string]string{
		"reply":  `{"partialSuccess":{}}`,
		"items":  `otelcol_limiter_items{otelcol_component_id="limiter",otelcol_component_outcome="success",otelcol_signal="logs"} 3`,
		"level":  "otelcol_governor_pressure_level 0",
		"cgroup": "0::/pod/container",
		"code":   "0",
	} {
		if got := result.Values[key]; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if said := result.Values["unreadable"]; !strings.Contains(said, `"probe":"memory_pressure"`) {
		t.Errorf("unreadable: %q, want a warning of memory_pressure", said)
	}
	if events := result.Values["events"]; !strings.Contains(events, "oom_kill 0") {
		t.Errorf("the kernel killed somebody: %s", events)
	}
}
