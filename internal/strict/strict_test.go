// SPDX-License-Identifier: Apache-2.0

package strict_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.uber.org/goleak"

	"github.com/otel-governor/otel-governor/internal/strict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type config struct {
	Name    string             `mapstructure:"name"`
	Section section            `mapstructure:"section"`
	Names   []string           `mapstructure:"names"`
	Each    map[string]section `mapstructure:"each"`
	Disks   []disk             `mapstructure:"disks"`
}

type section struct {
	Size     int64         `mapstructure:"size" strict:"size"`
	MaxSize  *int64        `mapstructure:"max_size" strict:"size"`
	Count    int64         `mapstructure:"count" strict:"count"`
	Whole    int64         `mapstructure:"whole"`
	Fraction float64       `mapstructure:"fraction"`
	Share    *float64      `mapstructure:"share"`
	Timeout  time.Duration `mapstructure:"timeout"`
	Enabled  bool          `mapstructure:"enabled"`
	Exempt   *bool         `mapstructure:"exempt"`
}

type disk struct {
	Path    string        `mapstructure:"path"`
	Share   float64       `mapstructure:"share"`
	Reserve *int64        `mapstructure:"reserve" strict:"size"`
	Every   time.Duration `mapstructure:"every"`
	Strict  bool          `mapstructure:"strict"`
	Tags    []string      `mapstructure:"tags"`
}

// What errors say of the keys of the structs above.
const (
	sectionKeys = "count, enabled, exempt, fraction, max_size, share, size, timeout, whole"
	diskKeys    = "every, path, reserve, share, strict, tags"
)

func defaults() config {
	return config{Name: "default", Section: section{Size: 1, Count: 2, Whole: 3, Fraction: 0.4, Timeout: 5, Enabled: true}}
}

// decode decodes YAML the way a Collector does, environment variables and all.
func decode(t *testing.T, yaml string) (config, error) {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"yaml:" + yaml},
		ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory(), envprovider.NewFactory()},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(context.Background())
	require.NoError(t, err)
	c := defaults()
	err = strict.Decode(conf, &c)
	return c, err
}

func TestValuesAreReadAsTheyAreWritten(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		want       func(*section)
	}{
		{"size", "5", func(s *section) { s.Size = 5 }},
		{"size", "0", func(s *section) { s.Size = 0 }},
		{"size", "-1", func(s *section) { s.Size = -1 }}, // for the range check to name
		{"size", "512M", func(s *section) { s.Size = 512 << 20 }},
		{"size", "512MB", func(s *section) { s.Size = 512 << 20 }},
		{"size", "512 MB", func(s *section) { s.Size = 512 << 20 }},
		{"size", "512MiB", func(s *section) { s.Size = 512 << 20 }},
		{"size", "512Mi", func(s *section) { s.Size = 512 << 20 }},
		{"size", "1.5g", func(s *section) { s.Size = 3 << 29 }},
		{"size", "9223372036854775807", func(s *section) { s.Size = math.MaxInt64 }},
		{"count", "7", func(s *section) { s.Count = 7 }},
		{"count", "unlimited", func(s *section) { s.Count = strict.Unlimited }},
		{"whole", "7", func(s *section) { s.Whole = 7 }},
		{"fraction", "0.25", func(s *section) { s.Fraction = 0.25 }},
		{"fraction", "1", func(s *section) { s.Fraction = 1 }},
		{"fraction", "5e-1", func(s *section) { s.Fraction = 0.5 }},
		{"share", "0", func(s *section) { s.Share = new(float64) }},
		{"timeout", "1m30s", func(s *section) { s.Timeout = 90 * time.Second }},
		{"timeout", "0", func(s *section) { s.Timeout = 0 }},
		{"enabled", "true", func(s *section) { s.Enabled = true }},
		{"enabled", "false", func(s *section) { s.Enabled = false }},
		{"exempt", "false", func(s *section) { s.Exempt = new(bool) }},
		{"exempt", "true", func(s *section) { s.Exempt = new(true) }},
	} {
		want := defaults()
		tt.want(&want.Section)
		t.Run(tt.key+" "+tt.value, func(t *testing.T) {
			got, err := decode(t, fmt.Sprintf("section: {%s: %s}", tt.key, tt.value))
			require.NoError(t, err)
			require.Equal(t, want, got)

			t.Setenv("VALUE", tt.value)
			got, err = decode(t, fmt.Sprintf("section: {%s: '${env:VALUE}'}", tt.key))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestListsAndMaps(t *testing.T) {
	t.Setenv("NAME", "0512")
	for yaml, want := range map[string]config{
		"names: [a, '${env:NAME}', '']": {Names: []string{"a", "0512"}},
		"names: []":                     {},
		"names: ":                       {},
		"each: ":                        {},
		"each: {}":                      {},
		"each: {a: {size: 1k}, b.c/d: {count: 3}}": {Each: map[string]section{"a": {Size: 1024}, "b.c/d": {Count: 3}}},
		"each: {a: , b: {}}":                       {Each: map[string]section{"b": {}}},
		"each: {a: {max_size: 5, timeout: }}":      {Each: map[string]section{"a": {MaxSize: new(int64(5))}}},
	} {
		got, err := decode(t, yaml)
		require.NoError(t, err, yaml)
		want.Name, want.Section = defaults().Name, defaults().Section
		require.Equal(t, want, got, yaml)
	}
	_, err := decode(t, "{names: {a: 1}, each: {a: {size: big, sise: 1}, b: 5}}")
	require.EqualError(t, err, "'each::a::sise' is not a key here, allowed are "+sectionKeys+"\n"+
		"'each::b' must hold keys ("+sectionKeys+"), got 5\n"+
		"'names' must be a list such as [a, b], got map[a:1]\n"+
		"'each::a::size' must be a whole number of bytes below 2^63, or a size such as 512MiB, got big")
	_, err = decode(t, "{names: [a, {b: 1}, [c]], nmae: x, section: {size: big}}")
	require.EqualError(t, err, "'names::1' must be a single value, got keys (b)\n"+
		"'names::2' must be a single value, got the list [c]\n"+
		"'nmae' is not a key here, allowed are disks, each, name, names, section\n"+
		"'section::size' must be a whole number of bytes below 2^63, or a size such as 512MiB, got big")
	_, err = decode(t, "each: [a]")
	require.EqualError(t, err, "'each' must hold names with keys ("+sectionKeys+") each, got [a]")
}

func TestEmptyMeansUnset(t *testing.T) {
	t.Setenv("EMPTY", "")
	for _, value := range []string{"", "''", "~", "${env:EMPTY}", "${env:NOT_THERE:-}", "' '"} {
		for _, key := range []string{"size", "max_size", "count", "whole", "fraction", "share", "timeout", "enabled", "exempt"} {
			got, err := decode(t, fmt.Sprintf("section:\n  %s: %s", key, value))
			require.NoError(t, err, "%s: %s", key, value)
			require.Equal(t, defaults(), got, "%s: %s", key, value)
		}
		for _, key := range []string{"section", "name", "names", "each", "disks"} {
			got, err := decode(t, key+": "+value)
			require.NoError(t, err, "%s: %s", key, value)
			require.Equal(t, defaults(), got, "%s: %s", key, value)
		}
	}
}

func TestWhatIsNotExactlyRightIsRefused(t *testing.T) {
	const (
		size  = "must be a whole number of bytes below 2^63, or a size such as 512MiB, got "
		count = "must be a whole number below 2^63, without leading zeros, or unlimited, got "
		whole = "must be a whole number below 2^63, without leading zeros, got "
		num   = "must be a number such as 0.5, got "
		dur   = "must be a duration such as 500ms or 30s, got "
		flag  = "must be true or false, got "
	)
	for _, tt := range []struct{ key, value, want string }{
		{"size", "1.9", size + "1.9"},
		{"size", "1e9", size + "1e+09"},
		{"size", "0x10MiB", size + "0x10MiB"},
		{"size", "5 parsecs", size + "5 parsecs"},
		{"size", "9223372036854775808", size + "9223372036854775808"},
		{"size", "99999999999TiB", size + "99999999999TiB"},
		{"size", "true", size + "true"},
		{"size", "-5MiB", size + "-5MiB"},
		{"max_size", ".inf", size + "+Inf"},
		{"count", "many", count + "many"},
		{"count", "1e3", count + "1000.0"},
		{"count", "Unlimited", count + "Unlimited"},
		{"count", "2.0000001", count + "2.0000001"},
		{"whole", "unlimited", whole + "unlimited"},
		{"whole", "18446744073709551615", whole + "18446744073709551615"},
		{"fraction", ".nan", num + "NaN"},
		{"fraction", "half", num + "half"},
		{"share", "50%", num + "50%"},
		{"timeout", "5", dur + "5"},
		{"timeout", "soon", dur + "soon"},
		{"timeout", `"a\nb"`, dur + `"a\nb"`},
		{"enabled", "yes", flag + "yes"},
		{"enabled", "1", flag + "1"},
		{"exempt", "'True'", flag + "True"},
		{"exempt", "[true]", "must be a single value, got the list [true]"},
		{"size", "[1, 2]", "must be a single value, got the list [1 2]"},
		{"size", "{a: 1}", "must be a single value, got keys (a)"},
		{"sise", "1", "is not a key here, allowed are " + sectionKeys},
	} {
		t.Run(tt.key+" "+tt.value, func(t *testing.T) {
			got, err := decode(t, fmt.Sprintf("section: {%s: %s}", tt.key, tt.value))
			require.EqualError(t, err, "'section::"+tt.key+"' "+tt.want)
			require.Equal(t, defaults(), got, "what cannot be decoded changes nothing")
		})
	}
}

func TestALeadingZeroThatYAMLWouldTakeForOctal(t *testing.T) {
	t.Setenv("VALUE", "0512")
	_, err := decode(t, "section: {whole: '${env:VALUE}'}")
	require.EqualError(t, err, "'section::whole' must be a whole number below 2^63, without leading zeros, got 0512")
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := decode(t, "{nmae: x, section: {size: big, count: few, timeout: [1], fraction: {}}}")
	for _, key := range []string{"nmae", "section::size", "section::count", "section::timeout", "section::fraction"} {
		require.ErrorContains(t, err, "'"+key+"'")
	}
	_, err = decode(t, "section: 5")
	require.EqualError(t, err, "'section' must hold keys ("+sectionKeys+"), got 5")
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"", "0", "1", "-1", "512MiB", "1.5 GB", "1e9", "9223372036854775807", "8E", "0.0000001k"} {
		f.Add(s)
	}
	number := regexp.MustCompile(`^[0-9]+$`)
	f.Fuzz(func(t *testing.T, s string) {
		n, err := strict.ParseSize(s)
		if err != nil {
			require.Zero(t, n)
			return
		}
		if number.MatchString(s) {
			exact, _ := new(big.Int).SetString(s, 10)
			require.Equal(t, exact.String(), fmt.Sprint(n))
		}
		if s[0] != '-' {
			require.GreaterOrEqual(t, n, int64(0))
		}
	})
}
