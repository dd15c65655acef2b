// SPDX-License-Identifier: Apache-2.0

package strict_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"pgregory.net/rapid"

	"github.com/otel-governor/otel-governor/internal/strict"
)

func TestListsOfSections(t *testing.T) {
	t.Setenv("OCTAL", "0512")
	t.Setenv("NO", "false")
	t.Setenv("DISK", "{path: /b, reserve: 1k}")
	t.Setenv("DISKS", "[{path: /a}, {path: /b}]")
	for yaml, want := range map[string][]disk{
		"disks: [{path: /a, share: 0.1, reserve: 2GiB, every: 5s, strict: true, tags: [x, y]}, {path: /b}]": {
			{Path: "/a", Share: 0.1, Reserve: new(int64(2 << 30)), Every: 5 * time.Second, Strict: true, Tags: []string{"x", "y"}},
			{Path: "/b"},
		},
		"disks: [{path: '${env:OCTAL}', strict: '${env:NO}'}]":                     {{Path: "0512"}},
		"disks: [{path: /a}, '${env:DISK}']":                                       {{Path: "/a"}, {Path: "/b", Reserve: new(int64(1024))}},
		"disks: ${env:DISKS}":                                                      {{Path: "/a"}, {Path: "/b"}},
		"disks: [{path: /a, share: , reserve: '', strict: ' '}]":                   {{Path: "/a"}},
		"disks: [{share: 0, reserve: 0}]":                                          {{Reserve: new(int64)}},
		"disks: [~, '', {}, {path: '${env:NONE:-}'}, '${env:NONE:-}', {path: /a}]": {{Path: "/a"}},
		"disks: [~]":           {},
		"disks: []":            nil,
		"disks: ":              nil,
		"disks: ''":            nil,
		"disks: ${env:NONE:-}": nil,
	} {
		got, err := decode(t, yaml)
		require.NoError(t, err, yaml)
		require.Equal(t, want, got.Disks, yaml)
	}
}

func TestAListReplacesWhatWasThere(t *testing.T) {
	for yaml, want := range map[string][]disk{
		"disks: [{share: 1}]": {{Share: 1}},
		"disks: ":             {{Path: "/default", Share: 0.5}},
		"{}":                  {{Path: "/default", Share: 0.5}},
	} {
		r, err := confmap.NewRetrievedFromYAML([]byte(yaml))
		require.NoError(t, err)
		conf, err := r.AsConf()
		require.NoError(t, err)
		c := config{Disks: []disk{{Path: "/default", Share: 0.5}}}
		require.NoError(t, strict.Decode(conf, &c))
		require.Equal(t, want, c.Disks, yaml)
	}
}

func TestFaultsInAListNameTheirPlace(t *testing.T) {
	t.Setenv("BAD", "{path: /b, reserve: big}")
	for yaml, want := range map[string]string{
		"disks: [{path: /a}, {reserve: big, strict: on}]": "'disks::1::reserve' must be a whole number of bytes below 2^63, or a size such as 512MiB, got big\n" +
			"'disks::1::strict' must be true or false, got on",
		"disks: [{pth: /a}]":                "'disks::0::pth' is not a key here, allowed are " + diskKeys,
		"disks: [~, {path: [a, b]}]":        "'disks::1::path' must be a single value, got the list [a b]",
		"disks: [{path: {a: b}}]":           "'disks::0::path' must be a single value, got keys (a)",
		"disks: [{tags: a}]":                "'disks::0::tags' must be a list such as [a, b], got a",
		"disks: [{tags: [a, [b]]}]":         "'disks::0::tags::1' must be a single value, got the list [b]",
		"disks: [{}, /a]":                   "'disks::1' must hold keys (" + diskKeys + "), got /a",
		"disks: [[{path: /a}]]":             "'disks::0' must hold keys (" + diskKeys + "), got [map[path:/a]]",
		"disks: {path: /a}":                 "'disks' must be a list with keys (" + diskKeys + ") in each element, got map[path:/a]",
		"disks: /a":                         "'disks' must be a list with keys (" + diskKeys + ") in each element, got /a",
		"disks: [{path: /a}, '${env:BAD}']": "'disks::1::reserve' must be a whole number of bytes below 2^63, or a size such as 512MiB, got big",
		"section: [{size: 1}]":              "'section' must hold keys (" + sectionKeys + "), got [map[size:1]]",
		"{disks: [5, {pth: 1, share: half}, {every: 7}], nmae: x}": "'disks::0' must hold keys (" + diskKeys + "), got 5\n" +
			"'nmae' is not a key here, allowed are disks, each, name, names, section\n" +
			"'disks::1::pth' is not a key here, allowed are " + diskKeys + "\n" +
			"'disks::1::share' must be a number such as 0.5, got half\n" +
			"'disks::2::every' must be a duration such as 500ms or 30s, got 7",
	} {
		_, err := decode(t, yaml)
		require.EqualError(t, err, want, yaml)
	}
}

func TestAListOfAnyElementsKeepsTheGoodOnesAndNamesTheOthers(t *testing.T) {
	type written struct {
		yaml  string
		good  *disk
		fault string // after the element's place
	}
	kinds := rapid.SampledFrom([]written{
		{yaml: "{path: /a}", good: &disk{Path: "/a"}},
		{yaml: "{share: 0, path: }", good: &disk{}},
		{yaml: "{reserve: 1MiB, strict: true}", good: &disk{Reserve: new(int64(1 << 20)), Strict: true}},
		{yaml: "~"},
		{yaml: "''"},
		{yaml: "{}"},
		{yaml: "{path: ' ', reserve: ~}"},
		{yaml: "5", fault: "' must hold keys"},
		{yaml: "[]", fault: "' must hold keys"},
		{yaml: "{paths: /a}", fault: "::paths' is not a key here"},
		{yaml: "{strict: yes!}", fault: "::strict' must be true or false"},
	})
	rapid.Check(t, func(r *rapid.T) {
		var list, faults []string
		good := []disk{}
		for i, w := range rapid.SliceOfN(kinds, 0, 12).Draw(r, "elements") {
			list = append(list, w.yaml)
			if w.good != nil {
				good = append(good, *w.good)
			}
			if w.fault != "" {
				faults = append(faults, fmt.Sprintf("'disks::%d%s", i, w.fault))
			}
		}
		got, err := decode(t, "disks: ["+strings.Join(list, ", ")+"]")
		if len(faults) == 0 {
			require.NoError(r, err)
			require.Equal(r, good, append([]disk{}, got.Disks...))
			return
		}
		require.Len(r, strings.Split(err.Error(), "\n"), len(faults))
		for _, f := range faults {
			require.ErrorContains(r, err, f)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, yaml := range []string{
		"disks: [{path: /a, strict: true, tags: [a]}, ~, 5, [b]]",
		"{name: x, section: {size: 1k, exempt: false}, names: [a, ''], each: {a: {count: unlimited}, b: }}",
		"{names: {a: b}, each: [c], disks: x, section: [], '': 1}",
	} {
		f.Add(yaml)
	}
	f.Fuzz(func(t *testing.T, yaml string) {
		r, err := confmap.NewRetrievedFromYAML([]byte(yaml))
		if err != nil {
			t.Skip()
		}
		conf, err := r.AsConf()
		if err != nil {
			t.Skip()
		}
		c := defaults()
		if err := strict.Decode(conf, &c); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "'"), "what is refused is refused by its key, and not by confmap: %v", err)
		}
	})
}
