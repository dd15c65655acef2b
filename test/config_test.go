// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Where the components' keys are.
const (
	governorAt = "extensions::governor::"
	limiterAt  = "processors::limiter::"
)

// key is a key of the configuration with a value that it takes and that is not its default.
type key struct{ name, value string }

var (
	governorKeys = []key{
		{"mode", "observe"},
		{"memory::pool_size", "512MB"},
		{"memory::pool_fraction", "0.6"},
		{"memory::refresh_interval", "10s"},
		{"memory::gomemlimit_fraction", "0.8"},
		{"admission::max_concurrent", "99"},
		{"admission::max_queued", "0"},
		{"admission::max_queued_fraction", "0.5"},
		{"admission::queue_timeout", "250ms"},
		{"admission::processing_timeout", "20s"},
		{"admission::max_batch_memory", "1.5MiB"},
		{"admission::max_batch_items", "5000"},
		{"tenants::auth_attributes", "[sub]"},
		{"tenants::metadata_keys", "[x-tenant]"},
		{"tenants::allow", "[default, acme]"},
		{"tenants::max_tracked", "500"},
		{"tenants::idle_timeout", "5m"},
		{"tenants::defaults::weight", "1.5"},
		{"tenants::defaults::max_concurrent", "32"},
		{"tenants::defaults::max_queued", "16"},
		{"tenants::defaults::memory_fraction", "0.25"},
		{"tenants::defaults::max_batch_memory", "1MiB"},
		{"tenants::defaults::max_batch_items", "4500"},
		{"tenants::defaults::rate::requests_per_second", "1000"},
		{"tenants::defaults::rate::items_per_second", "1e6"},
		{"tenants::defaults::rate::bytes_per_second", "5e8"},
		{"tenants::defaults::rate::burst", "10s"},
		{"tenants::defaults::breaker::breaches", "5"},
		{"tenants::defaults::breaker::window", "20s"},
		{"tenants::defaults::breaker::ratio", "0.4"},
		{"tenants::defaults::breaker::cooldown", "10s"},
		{"tenants::overrides", "{acme: {weight: 2}}"},
		{"tenants::overrides_file", "../testdata/overrides.yaml"},
		{"guard::heap_headroom_fraction", "0.2"},
		{"telemetry::tenants", "top"},
		{"telemetry::top", "5"},
	}
	limiterKeys = []key{
		{"governor", "governor"},
		{"tenant_attribute", "team"},
		{"limits::max_batch_memory", "1048576"},
		{"limits::max_batch_items", "4000"},
		{"limits::max_concurrent", "7"},
		{"limits::processing_timeout", "10s"},
	}
)

// Ways to write a value.
func literal(k key) (value, env string) { return k.value, "" }

func environmental(k key) (string, string) {
	return "${env:" + variable(k) + "}", variable(k) + "=" + k.value
}
func unset(k key) (value, env string)      { return "${env:" + variable(k) + ":-}", "" }
func emptyVariable(k key) (string, string) { return "${env:" + variable(k) + "}", variable(k) + "=" }

func quoted(k key) (value, env string) {
	if strings.ContainsAny(k.value, "[{") { // not a single value
		return k.value, ""
	}
	return "'" + k.value + "'", ""
}

func variable(k key) string { return "TEST_" + strings.ToUpper(strings.ReplaceAll(k.name, "::", "_")) }

// written is a setup that has all keys, written in one way.
func written(way func(key) (string, string)) setup {
	s := setup{config: "gateway.yaml"}
	for at, keys := range map[string][]key{
		governorAt: governorKeys, limiterAt: limiterKeys,
	} {
		for _, k := range keys {
			value, env := way(k)
			s.yaml = append(s.yaml, at+k.name+": "+value)
			if env != "" {
				s.env = append(s.env, env)
			}
		}
	}
	return s
}

// validate runs the collector's own check of a configuration and returns what it says.
func validate(t *testing.T, s setup) (string, error) {
	t.Helper()
	args := []string{"validate", "--config", "../testdata/" + s.config}
	for _, y := range s.yaml {
		args = append(args, "--config", "yaml:"+y)
	}
	cmd := exec.Command(collectorBinary(t), args...)
	cmd.Env = append(environment(), s.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestEveryKeyCanBeWrittenInEveryWay starts a collector on each way and looks at what shows of the values.
func TestEveryKeyCanBeWrittenInEveryWay(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		way func(key) (string, string)
		set bool
	}{
		"literally":                    {literal, true},
		"quoted":                       {quoted, true},
		"by environment":               {environmental, true},
		"by environment, default none": {unset, false},
		"by empty variable":            {emptyVariable, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := written(k.way)
			if out, err := validate(t, s); err != nil {
				t.Fatalf("validate: %v\n%s", err, out)
			}
			c := start(t, s)
			l, m := c.wantLine("Memory pool sized"), c.scrape()
			got := map[string]int64{
				"pool is explicit":    b(l.text("source") == "explicit"),
				"max_batch_memory":    l.bytes("max_batch_memory"),
				"max_concurrent":      m.sum("otelcol_governor_concurrency_limit"),
				"limiter's":           m.sum("otelcol_limiter_concurrency_limit", "otelcol_signal=logs"),
				"batch of 4001 items": b(c.send(grpcProtocol, logs, items(4001, "many")).status.Err() == nil),
				"observed":            c.scrape().sum("otelcol_governor_observed_refusals", "error_type=batch_items"),
			}
			want := map[string]int64{
				"pool is explicit": 0, "max_batch_memory": 100 * mib, "max_concurrent": 1024, "limiter's": 1024,
				"batch of 4001 items": 1, "observed": 0,
			}
			if k.set {
				want = map[string]int64{
					"pool is explicit": 1, "max_batch_memory": 3 * mib / 2, "max_concurrent": 99, "limiter's": 7,
					"batch of 4001 items": 1, "observed": 1,
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

func b(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// What an error says that a key takes.
const (
	aSize     = "a whole number of bytes below 2^63, or a size such as 512MiB"
	aWhole    = "a whole number below 2^63, without leading zeros"
	aCount    = "a whole number below 2^63, without leading zeros, or unlimited"
	aDuration = "a duration such as 500ms or 30s"
	aFraction = "a number such as 0.5"
	aRate     = "a number from 0.001 to 1e12, or unlimited"
)

var (
	sizes  = []string{"memory::pool_size", "admission::max_batch_memory", "tenants::defaults::max_batch_memory"}
	wholes = []string{
		"admission::max_concurrent", "admission::max_queued", "tenants::max_tracked", "tenants::defaults::max_concurrent",
		"tenants::defaults::max_queued", "telemetry::top",
	}
	counts    = []string{"admission::max_batch_items", "tenants::defaults::max_batch_items", "tenants::defaults::breaker::breaches"}
	durations = []string{
		"memory::refresh_interval", "admission::queue_timeout", "admission::processing_timeout", "tenants::idle_timeout",
		"tenants::defaults::rate::burst", "tenants::defaults::breaker::window", "tenants::defaults::breaker::cooldown",
	}
	fractions = []string{
		"memory::pool_fraction", "memory::gomemlimit_fraction", "admission::max_queued_fraction",
		"guard::heap_headroom_fraction", "tenants::defaults::weight", "tenants::defaults::memory_fraction",
		"tenants::defaults::breaker::ratio",
	}
	rates = []string{
		"tenants::defaults::rate::requests_per_second", "tenants::defaults::rate::items_per_second",
		"tenants::defaults::rate::bytes_per_second",
	}
	limiterSizes     = []string{"limits::max_batch_memory"}
	limiterWholes    = []string{"limits::max_batch_items", "limits::max_concurrent"}
	limiterDurations = []string{"limits::processing_timeout"}
)

// TestWrongValuesAreNamedTogether gives keys of one type values that none of them takes. Every one of them
// is told in one error, with what was found and what is allowed.
func TestWrongValuesAreNamedTogether(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		governor, limiter []string // keys
		values            []string
		env               bool // the value comes from the environment
		allowed           string
	}{
		"sizes": {
			sizes, limiterSizes,
			[]string{"1e9", "1.9", "nonsense", "true", "-1MiB", "512 M B", "9223372036854775808", "8EiB"},
			false, aSize,
		},
		"sizes by environment": {sizes, limiterSizes, []string{"1e9", "1.9", "0512", "+1", "0x10", "9223372036854775807B"}, true, aSize},
		"whole numbers": {
			wholes, limiterWholes,
			[]string{"1.9", "1e6", "ten", "true", "1s", "9223372036854775808", "unlimited"},
			false, aWhole,
		},
		"whole numbers by environment": {wholes, limiterWholes, []string{"1.9", "0512", "+1", "1e3"}, true, aWhole},
		"counts":                       {counts, nil, []string{"1.9", "many", "true", "9223372036854775808"}, false, aCount},
		"counts by environment":        {counts, nil, []string{"0512", "1.9"}, true, aCount},
		"durations":                    {durations, limiterDurations, []string{"30", "soon", "true", "1.5", "300y"}, false, aDuration},
		"fractions":                    {fractions, nil, []string{"half", "50%", "true", "1/2", ".inf", ".nan"}, false, aFraction},
		"rates":                        {rates, nil, []string{"fast", "0", "-1", ".inf", "true", "0.0001"}, false, aRate},
		"fractions by environment":     {fractions, nil, []string{"0x1p-2", "NaN", "inf", "1_0"}, true, aFraction},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, value := range k.values {
				v := value
				s := setup{config: "gateway.yaml"}
				if k.env {
					v, s.env = "${env:TEST_VALUE}", []string{"TEST_VALUE=" + value}
				}
				for at, names := range map[string][]string{governorAt: k.governor, limiterAt: k.limiter} {
					for _, name := range names {
						s.yaml = append(s.yaml, at+name+": "+v)
					}
				}
				out, err := validate(t, s)
				if err == nil {
					t.Errorf("%s is taken for each of %v", value, slices.Concat(k.governor, k.limiter))
				}
				for _, name := range slices.Concat(k.governor, k.limiter) {
					found := value
					if !k.env {
						found = cmp.Or(number[value], value)
					}
					if want := fmt.Sprintf("'%s' must be %s, got %s\n", name, k.allowed, found); !strings.Contains(out, want) {
						t.Errorf("%s: no %q in\n%s", value, want, out)
					}
				}
			}
		})
	}
}

// number is what YAML makes of what it takes for a number.
var number = map[string]string{
	"1e9": "1e+09", "1e6": "1e+06", ".inf": "+Inf", ".nan": "NaN",
}

// TestNumberBeyondTheCollectorsOwn is refused before it reaches a component, so that no key is named.
func TestNumberBeyondTheCollectorsOwn(t *testing.T) {
	t.Parallel()
	out, err := validate(t, setup{
		config: "gateway.yaml", env: []string{"TEST_VALUE=9223372036854775808"},
		yaml: []string{"extensions::governor::memory::pool_size: ${env:TEST_VALUE}"},
	})
	if err == nil || !strings.Contains(out, "unsupported type=uint64") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestValuesOutOfRangeAreNamedTogether gives every key values just outside its range.
func TestValuesOutOfRangeAreNamedTogether(t *testing.T) {
	t.Parallel()
	for _, faults := range [][]struct{ at, name, value, want string }{
		{
			{governorAt, "mode", "relaxed", "enforce or observe, got relaxed"},
			{governorAt, "memory::pool_size", "33554431", "at least 32MiB (33554432), got 33554431"},
			{governorAt, "memory::pool_fraction", "0", "in (0, 1], got 0"},
			{governorAt, "memory::refresh_interval", "9ms", "at least 10ms, got 9ms"},
			{governorAt, "memory::gomemlimit_fraction", "1.01", "in [0, 1], got 1.01"},
			{governorAt, "admission::max_concurrent", "0", "at least 1, got 0"},
			{governorAt, "admission::max_queued", "-1", "at least 0, got -1"},
			{governorAt, "admission::max_queued_fraction", "1.01", "in [0, 1], got 1.01"},
			{governorAt, "admission::queue_timeout", "999us", "at least 1ms, got 999µs"},
			{governorAt, "admission::processing_timeout", "1us", "0 for none, or at least 1ms, got 1µs"},
			{governorAt, "admission::max_batch_memory", "0", "at least 1, got 0"},
			{governorAt, "admission::max_batch_items", "0", "at least 1, or unlimited, got 0"},
			{governorAt, "guard::heap_headroom_fraction", "1", "in [0, 1), got 1"},
			{governorAt, "tenants::max_tracked", "0", "at least 1, got 0"},
			{governorAt, "tenants::idle_timeout", "999ms", "at least 1s, got 999ms"},
			{governorAt, "tenants::defaults::weight", "0", "from 0.001 to 1000, got 0"},
			{governorAt, "tenants::defaults::max_concurrent", "0", "at least 1, got 0"},
			{governorAt, "tenants::defaults::max_queued", "-1", "at least 0, got -1"},
			{governorAt, "tenants::defaults::memory_fraction", "0", "in (0, 1], got 0"},
			{governorAt, "tenants::defaults::max_batch_memory", "0", "at least 1, got 0"},
			{governorAt, "tenants::defaults::max_batch_items", "0", "at least 1, or unlimited, got 0"},
			{governorAt, "tenants::defaults::rate::burst", "0s", "from 1ms to 1h, got 0s"},
			{governorAt, "tenants::defaults::breaker::breaches", "0", "at least 1, or unlimited, got 0"},
			{governorAt, "tenants::defaults::breaker::window", "1ms", "from 1s to 1h, got 1ms"},
			{governorAt, "tenants::defaults::breaker::ratio", "1.1", "in [0, 1], got 1.1"},
			{governorAt, "tenants::defaults::breaker::cooldown", "31s", "from 1s to 30s, got 31s"},
			{governorAt, "tenants::overrides::acme::max_concurrent", "0", "at least 1, got 0"},
			{governorAt, "telemetry::tenants", "all", "none, configured or top, got all"},
			{governorAt, "telemetry::top", "0", "from 1 to 1000, got 0"},
			{limiterAt, "limits::max_batch_memory", "0", "at least 1, got 0"},
			{limiterAt, "limits::max_batch_items", "0", "at least 1, got 0"},
			{limiterAt, "limits::max_concurrent", "0", "at least 1, got 0"},
			{limiterAt, "limits::processing_timeout", "0s", "at least 1ms, got 0s"},
		},
		{
			{governorAt, "mode", "7", "enforce or observe, got 7"},
			{governorAt, "memory::pool_size", "-1", "at least 32MiB (33554432), got -1"},
			{governorAt, "memory::pool_fraction", "-0.5", "in (0, 1], got -0.5"},
			{governorAt, "memory::refresh_interval", "-30s", "at least 10ms, got -30s"},
			{governorAt, "memory::gomemlimit_fraction", "-1", "in [0, 1], got -1"},
			{governorAt, "admission::max_concurrent", "-1", "at least 1, got -1"},
			{governorAt, "admission::max_queued_fraction", "-1", "in [0, 1], got -1"},
			{governorAt, "admission::queue_timeout", "0s", "at least 1ms, got 0s"},
			{governorAt, "admission::processing_timeout", "-1s", "0 for none, or at least 1ms, got -1s"},
			{governorAt, "admission::max_batch_memory", "-1", "at least 1, got -1"},
			{governorAt, "admission::max_batch_items", "-1", "at least 1, or unlimited, got -1"},
			{governorAt, "guard::heap_headroom_fraction", "-0.1", "in [0, 1), got -0.1"},
			{limiterAt, "limits::max_batch_memory", "-1", "at least 1, got -1"},
			{limiterAt, "limits::max_batch_items", "-1", "at least 1, got -1"},
			{limiterAt, "limits::max_concurrent", "-1", "at least 1, got -1"},
			{limiterAt, "limits::processing_timeout", "-1s", "at least 1ms, got -1s"},
		},
	} {
		s := setup{config: "gateway.yaml"}
		for _, f := range faults {
			s.yaml = append(s.yaml, f.at+f.name+": "+f.value)
		}
		out, err := validate(t, s)
		if err == nil {
			t.Errorf("%v are taken", s.yaml)
		}
		for _, f := range faults {
			if want := fmt.Sprintf("'%s' must be %s", f.name, f.want); !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
}

// TestSizesAreBinaryWhateverTheSuffix writes one size in every way.
func TestSizesAreBinaryWhateverTheSuffix(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"512M", "512MB", "512MiB", "512 MB", "512mb", "0.5GiB", "536870912", "536870912B"} {
		c := start(t, setup{config: "gateway.yaml", yaml: []string{"extensions::governor::memory::pool_size: " + size}})
		if l := c.wantLine("Memory pool sized"); l.bytes("pool") != 512*mib {
			t.Errorf("%s: %v", size, l)
		}
	}
}

// TestShapesThatDoNotFit writes keys that do not exist, and values where there are sections and the reverse.
func TestShapesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"extensions::governor::pool_size: 1GiB":           "'pool_size' is not a key here, allowed are admission, door, guard, memory, mode, telemetry, tenants",
		"extensions::governor::memory::size: 1GiB":        "'memory::size' is not a key here, allowed are gomemlimit_fraction, pool_fraction, pool_size, refresh_interval",
		"processors::limiter::limits::max_queued: 1":      "'limits::max_queued' is not a key here, allowed are max_batch_items, max_batch_memory, max_concurrent, processing_timeout",
		"processors::limiter::max_concurrent: 1":          "'max_concurrent' is not a key here, allowed are governor, limits, tenant_attribute",
		"extensions::governor::memory: 1GiB":              "'memory' must hold keys (gomemlimit_fraction, pool_fraction, pool_size, refresh_interval), got 1GiB",
		"extensions::governor::memory: [1GiB]":            "'memory' must hold keys (gomemlimit_fraction, pool_fraction, pool_size, refresh_interval), got [1GiB]",
		"extensions::governor::memory::pool_size: {a: 1}": "'memory::pool_size' must be a single value, got keys (a)",
		"processors::limiter::governor: not good":         `'governor' must be the id of an extension such as governor or governor/name, got not good`,
		"extensions::governor::tenants::metadata_keys: a": "'tenants::metadata_keys' must be a list such as [a, b], got a",
		"extensions::governor::tenants::overrides: a":     "'tenants::overrides' must hold names with keys (breaker, max_batch_items,",
		"processors::limiter::governor: [governor]":       "'governor' must be a single value, got the list [governor]",
	} {
		if out, err := validate(t, setup{config: "gateway.yaml", yaml: []string{yaml}}); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, no %q in\n%s", yaml, err, want, out)
		}
	}
}
