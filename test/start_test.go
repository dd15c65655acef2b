// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"
)

const (
	atExtension = "failed to start extensions: "
	atLimiter   = `cannot start pipelines: failed to start "limiter" processor: `
)

// TestCollectorDoesNotStart has every way in which governor and limiter refuse to start, word by word.
func TestCollectorDoesNotStart(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		limit int64 // of memory; 0 is the machine's
		yaml  []string
		env   []string
		want  string // %s is the source of the limit
	}{
		"pool too small by limit": {
			limit: 512 * mib,
			yaml:  []string{"extensions::governor::memory::pool_fraction: 0.05"},
			want: atExtension + "the memory pool would be 26843545 bytes (0.05 of the limit of 536870912 from %s)" +
				" and must be at least 33554432 (32MiB): give the process more memory, or set 'memory::pool_size'" +
				" or a larger 'memory::pool_fraction'",
		},
		"pool too small by size": {
			yaml: []string{"extensions::governor::memory::pool_size: 31MiB"},
			want: "invalid configuration: extensions::governor: 'memory::pool_size' must be at least 32MiB (33554432), got 32505856",
		},
		"fraction above 1 beside a size": {
			yaml: []string{"extensions::governor::memory: {pool_size: 64MiB, pool_fraction: 1.5}"},
			want: "invalid configuration: extensions::governor: 'memory::pool_fraction' must be in (0, 1], got 1.5",
		},
		"fraction 0 beside a size": {
			yaml: []string{"extensions::governor::memory: {pool_size: 64MiB, pool_fraction: 0}"},
			want: "invalid configuration: extensions::governor: 'memory::pool_fraction' must be in (0, 1], got 0",
		},
		"batch larger than the pool": {
			yaml: []string{"extensions::governor: {memory: {pool_size: 64MiB}, admission: {max_batch_memory: 65MiB}}"},
			want: atExtension + "'admission::max_batch_memory' is 68157440 bytes and the memory pool is 67108864," +
				" so such a batch could never be admitted: lower the one or raise the other",
		},
		"two governors": {
			yaml: []string{"extensions::governor/second:", "service::extensions: [governor, governor/second]"},
			want: atExtension + `service::extensions has 2 governors, ["governor" "governor/second"]: a process has` +
				" one memory, so name only one of them",
		},
		"no bound for the heap": {
			yaml: []string{"extensions::governor::memory::gomemlimit_fraction: 0"},
			env:  []string{"GOGC=off"},
			want: atExtension + "garbage collection is off (GOGC=off) and Go has no memory limit, so nothing bounds" +
				" the heap: set GOMEMLIMIT, or 'memory::gomemlimit_fraction' above 0, or GOGC to a number",
		},
		"no governor": {
			yaml: []string{"extensions: {zpages: {endpoint: '127.0.0.1:0'}}", "service::extensions: [zpages]"},
			want: atLimiter + "there is no governor: add the extension governor to extensions and to service::extensions",
		},
		"governor of another name": {
			yaml: []string{"processors::limiter::governor: governor/other"},
			want: atLimiter + `'governor' names the extension "governor/other", which is not in service::extensions`,
		},
		"governor of another type": {
			yaml: []string{
				"extensions: {zpages: {endpoint: '127.0.0.1:0'}}", "service::extensions: [zpages, governor]",
				"processors::limiter::governor: zpages",
			},
			want: atLimiter + `'governor' names the extension "zpages", which is not a governor`,
		},
		"limits that raise": {
			yaml: []string{
				"extensions::governor::admission: {max_batch_memory: 1MiB, max_batch_items: 100}",
				"processors::limiter::limits: {max_batch_memory: 2MiB, max_batch_items: 101, processing_timeout: 1m}",
			},
			want: atLimiter + "limits::max_batch_memory 2097152 exceeds the governor's admission::max_batch_memory of 1048576" +
				"\nlimits::max_batch_items 101 exceeds the governor's admission::max_batch_items of 100" +
				"\nlimits::processing_timeout 1m0s exceeds the governor's admission::processing_timeout of 30s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{config: "gateway.yaml", yaml: k.yaml, env: k.env}
			want := k.want
			if k.limit > 0 {
				s.cgroup = newCgroup(t, k.limit)
				want = fmt.Sprintf(want, s.cgroup.source)
			}
			if got := strings.TrimSpace(refused(t, s)); got != want {
				t.Errorf("error\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestCollectorStartsAllTheSame has what looks like one of those errors and is none.
func TestCollectorStartsAllTheSame(t *testing.T) {
	t.Parallel()
	t.Run("no bound for the heap of an observer", func(t *testing.T) {
		start(t, setup{
			config: "gateway.yaml", env: []string{"GOGC=off"},
			yaml: []string{"extensions::governor: {mode: observe, memory: {pool_size: 1GiB, gomemlimit_fraction: 0}}"},
		})
	})
	t.Run("more places than there are", func(t *testing.T) {
		c := start(t, setup{config: "gateway.yaml", yaml: []string{
			"extensions::governor::admission::max_concurrent: 10",
			"processors: {limiter: {limits: {max_concurrent: 11}}, limiter/low: {limits: {max_concurrent: 9}}}",
			"service::pipelines::logs::processors: [limiter/low]",
		}})
		m := c.scrape()
		for id, want := range map[string]int64{"limiter": 20, "limiter/low": 9} { // of two signals, and one
			if got := m.sum("otelcol_limiter_concurrency_limit", "otelcol_component_id="+id); got != want {
				t.Errorf("%s: %d places, want %d", id, got, want)
			}
		}
	})
}

// TestWarningsNameTheComponent has what starts and will not work as its author meant.
func TestWarningsNameTheComponent(t *testing.T) {
	t.Parallel()
	c := start(t, setup{config: "gateway.yaml", yaml: []string{
		"processors: {batch/large: , limiter/late: }",
		"extensions::governor::memory::pool_size: 64MiB",
		"service::pipelines: {traces: {processors: []}, logs: {processors: [batch/large, limiter/late]}}",
	}})
	c.wantLine("Memory pool sized")
	var got []string
	for _, l := range c.warnings() {
		got = append(got, l.text("msg"))
	}
	want := []string{
		"pipeline logs has batch/large before limiter/late: senders are answered before their batch is admitted," +
			" and a refusal is a loss; put the limiter first",
		"pipeline traces has no limiter: what becomes of its batches is not followed, and without the door they are not governed; put one first",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l := c.wantLine("Memory pool sized"); fmt.Sprint(l["asynchronous"]) !=
		"[pipeline traces without a limiter processor batch/large]" {
		t.Errorf("what keeps data: %v", l["asynchronous"])
	}
}

// TestHeadersThatDoNotArriveAreAWarning has tenants told apart by headers that receivers keep to themselves, one of which
// has no door either.
func TestHeadersThatDoNotArriveAreAWarning(t *testing.T) {
	t.Parallel()
	want := func(receiver, protocol string) string {
		return "receiver " + receiver + " does not hand on the headers of " + protocol + " requests, so all who send them are" +
			" the default tenant; set protocols::" + protocol + "::include_metadata to true"
	}
	for name, k := range map[string]struct {
		yaml []string
		want []string
	}{
		"from neither protocol": {nil, []string{want("otlp", "grpc"), want("otlp", "http")}},
		"from one protocol": {
			[]string{"receivers::otlp::protocols::grpc::include_metadata: true"},
			[]string{want("otlp", "http")},
		},
		"from another receiver": {
			[]string{
				byHeaderYAML,
				"receivers::otlp/inner::protocols::grpc::endpoint: " + freeAddress(t),
				"service::pipelines::logs::receivers: [otlp, otlp/inner]",
			},
			[]string{
				"receiver otlp/inner does not name governor among its middlewares for grpc, so requests are refused only once" +
					" they are decoded; add {id: governor} to protocols::grpc::middlewares",
				want("otlp/inner", "grpc"),
			},
		},
		"from one that is not used": {
			[]string{byHeaderYAML, "receivers::otlp/spare::protocols::grpc:"},
			nil,
		},
		"from anywhere": {[]string{byHeaderYAML}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, setup{config: "gateway.yaml", yaml: append(k.yaml,
				"extensions::governor: {memory: {pool_size: 64MiB}, tenants: {metadata_keys: ["+headerName+"]}}")})
			var got []string
			for _, l := range c.warnings() {
				got = append(got, l.text("msg"))
			}
			if fmt.Sprint(got) != fmt.Sprint(k.want) {
				t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(k.want, "\n"))
			}
		})
	}
}

// TestUnlimitedMachineIsAWarning sizes the pool for the whole machine, where this process has no limit.
func TestUnlimitedMachineIsAWarning(t *testing.T) {
	t.Parallel()
	c := start(t, setup{config: "gateway.yaml"})
	sized := c.wantLine("Memory pool sized")
	if source := sized.text("source"); source != "meminfo" {
		t.Skipf("skipped, not passed: the test runs under a limit from %s", source)
	}
	l := c.wantLine("No memory limit is set")
	if l.bytes("pool") != sized.bytes("pool") || l.bytes("limit") != sized.bytes("limit") {
		t.Errorf("the warning %v does not fit %v", l, sized)
	}
}
