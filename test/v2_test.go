// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/vm"
)

// besides is what the default gateway has beside its own configuration in the machine. It resolves no
// names, of which the machine has none.
const besides = `
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
	cache := machines(t)
	batch, err := logs.make(items(3, "in the machine")).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	values := inMachine(t, cache, "testdata/v2.sh", vm.Machine{
		Files: map[string]string{"/bin/collector": collectorBinary(t), "/gateway.yaml": "../testdata/gateway.yaml"},
		Texts: map[string]string{"/machine.yaml": besides, "/batch.json": string(batch)},
	})
	for key, want := range map[string]struct{ limit, pool int64 }{
		"sized":   {384 * mib, 301989888}, // memory.high of the leaf
		"lowered": {320 * mib, 251658240}, // memory.max of the leaf
		"raised":  {512 * mib, 402653184}, // memory.max of the parent
	} {
		var l line
		d := json.NewDecoder(strings.NewReader(values[key]))
		d.UseNumber()
		if err := d.Decode(&l); err != nil {
			t.Errorf("%s: %v: %q", key, err, values[key])
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
		if got := values[key]; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if said := values["unreadable"]; !strings.Contains(said, `"probe":"memory_pressure"`) {
		t.Errorf("unreadable: %q, want a warning of memory_pressure", said)
	}
	if events := values["events"]; !strings.Contains(events, "oom_kill 0") {
		t.Errorf("the kernel killed somebody: %s", events)
	}
}

// TestV2Stories tells stories of this package once more, below cgroup v2: what is told of version 1 elsewhere, and
// what version 1 cannot do. The program that tells them in the machine is this one.
func TestV2Stories(t *testing.T) {
	cache := machines(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wantStatic(t, self)
	files := map[string]string{"/module/test/stories": self, "/module/bin/otelcol-governor": collectorBinary(t)}
	configs, err := filepath.Glob("../testdata/*.yaml")
	if err != nil || len(configs) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	for _, path := range configs {
		files["/module/testdata/"+filepath.Base(path)] = path
	}
	for _, story := range []struct {
		name string
		long bool
	}{
		{"TestExporterDownLosesNothing", false},
		{"TestExporterDownIsNobodysEnd/ceilings_off", true},
		{"TestExporterDownIsNobodysEnd/default_ceilings", true},
		{"TestExporterDownIsNobodysEnd/memory_limiter", true},
		{"TestNothingIsDroppedWhileTheLimitMoves", false},
		{"TestStallIsPressure", false},
		{"TestUnreadableProbesEndNothing", false},
		{"TestBombsKillWhoIsNotGoverned", false},
	} {
		t.Run(story.name, func(t *testing.T) {
			if story.long && testing.Short() {
				t.Skip("skipped, not passed: -short")
			}
			values := inMachine(t, cache, "testdata/v2_story.sh", vm.Machine{
				Files: files, Texts: map[string]string{"/story-name": "^" + strings.ReplaceAll(story.name, "/", "$/^") + "$"},
				Memory: 2048, CPUs: 2,
			})
			said := values["verdicts"]
			if !strings.Contains(said, "--- PASS: "+story.name+" ") || strings.Contains(said, "--- SKIP") {
				t.Errorf("not passed: %s", said)
			}
		})
	}
}

// machines returns where what a machine boots from is, or skips the test where there is none.
func machines(t *testing.T) (cache string) {
	t.Helper()
	cache, err := vm.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.Available(cache); err != nil {
		t.Skipf("skipped, not passed: %v", err)
	}
	return cache
}

// inMachine runs a script in a machine, which must end well, and returns what it reports.
func inMachine(t *testing.T, cache, script string, m vm.Machine) map[string]string {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	m.Script, m.Timeout = string(text), 4*time.Minute
	result, err := m.Run(t.Context(), cache, t.Output())
	if err != nil {
		t.Fatalf("after %v: %v", result.Elapsed, err)
	}
	t.Logf("the machine ran for %v", result.Elapsed.Round(10*time.Millisecond))
	return result.Values
}

// wantStatic checks that a program needs no others to run.
func wantStatic(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Fatalf("a machine has no %v (%v): build the tests with CGO_ENABLED=0, as make does", libraries, err)
	}
}
