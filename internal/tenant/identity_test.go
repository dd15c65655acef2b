// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		values []string
		name   string
	}{
		{[]string{"acme"}, "acme"},
		{[]string{"acme", "prod"}, "4:acme,4:prod"},
		{[]string{"acme", ""}, "4:acme,0:"},
		{[]string{"", "acme"}, "0:,4:acme"},
		{[]string{"4:acme,4:prod"}, "13:4:acme,4:prod"},
		{[]string{"default"}, "7:default"},
		{[]string{"_overflow"}, "9:_overflow"},
		{[]string{"7:default"}, "9:7:default"},
		{[]string{"default", "default"}, "7:default,7:default"},
		{[]string{"127.0.0.1:4317"}, "127.0.0.1:4317"},
		{[]string{"42"}, "42"},
		{[]string{"42:"}, "3:42:"},
		{[]string{":"}, ":"},
		{[]string{"a\x00\n\xff"}, "a\x00\n\xff"},
	} {
		name, ok := tenant.Identity(c.values...)
		assert.True(t, ok)
		assert.Equal(t, c.name, name, "%q", c.values)
	}
	for _, nobody := range [][]string{nil, {""}, {"", ""}} {
		name, ok := tenant.Identity(nobody...)
		assert.False(t, ok, "%q", nobody)
		assert.Empty(t, name)
	}
}

func TestIdentityIsBounded(t *testing.T) {
	long := strings.Repeat("x", tenant.MaxName-1)
	name, _ := tenant.Identity(long)
	assert.Equal(t, long, name)

	a, _ := tenant.Identity(long + "x")
	b, _ := tenant.Identity(strings.Repeat("x", 1<<20) + "y")
	assert.Len(t, a, tenant.MaxName)
	assert.Len(t, b, tenant.MaxName)
	assert.NotEqual(t, a, b)
	again, _ := tenant.Identity(a) // a client that sends what stands for another's long name
	assert.NotEqual(t, a, again)
	c, _ := tenant.Identity(long, long)
	d, _ := tenant.Identity(long, long+"y")
	assert.NotEqual(t, c, d)
}

// values are those that are apt to be taken for one another.
func values(label string, t *rapid.T) []string {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", ",", ":", "0:", "1:", "2:a,", "a", "default", "_overflow", "7:default", "~", "\x00", "\xff",
			strings.Repeat("a", tenant.MaxName-1), strings.Repeat("a", tenant.MaxName),
		}),
		rapid.StringOfN(rapid.RuneFrom([]rune("0123:,a~")), 0, 6, -1),
		rapid.String(),
	)
	value := rapid.Map(rapid.SliceOfN(piece, 0, 3), func(p []string) string { return strings.Join(p, "") })
	return rapid.SliceOfN(value, 1, 3).Draw(t, label)
}

func TestIdentityDoesNotCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values("a", t), values("b", t)
		if rapid.Bool().Draw(t, "feed it its own name") {
			if name, ok := tenant.Identity(a...); ok {
				b = []string{name}
			}
		}
		one, ok := tenant.Identity(a...)
		two, fine := tenant.Identity(b...)
		if ok && fine && (one == two) != slices.Equal(a, b) {
			t.Fatalf("%q is %q and %q is %q", a, one, b, two)
		}
		if len(one) > tenant.MaxName || one == tenant.DefaultName || one == tenant.OverflowName {
			t.Fatalf("%q is %q", a, one)
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add("a", "b", "1:a,1:b")
	f.Add("default", "", "7:default")
	f.Add(strings.Repeat("a", 300), "", strings.Repeat("a", 300))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		seen := map[string]string{}
		for _, values := range [][]string{{a}, {b}, {c}, {a, b}, {b, a}, {a, c}, {c, b}, {a, b, c}, {a + b}, {a + "," + b}} {
			name, ok := tenant.Identity(values...)
			require.Equal(t, strings.Join(values, "") != "", ok)
			require.Equal(t, ok, name != "")
			require.LessOrEqual(t, len(name), tenant.MaxName)
			require.NotContains(t, []string{tenant.DefaultName, tenant.OverflowName}, name)
			if other, taken := seen[name]; taken && ok {
				require.Equal(t, other, fmt.Sprintf("%q", values))
			}
			seen[name] = fmt.Sprintf("%q", values)
		}
		shown := tenant.Show(a)
		require.True(t, utf8.ValidString(shown))
		require.Less(t, strings.IndexFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), 0)
		require.Equal(t, a == b, shown == tenant.Show(b))
	})
}

func TestShow(t *testing.T) {
	for name, want := range map[string]string{
		"acme":                "acme",
		"Größe 你好 🙂":          "Größe 你好 🙂",
		"a\nb\x00\x1b[31m":    `a\nb\x00\x1b[31m`,
		`a\nb`:                `a\\nb`,
		"\xff\xfe":            `\xff\xfe`,
		"\ufffd":              "\ufffd",
		"gnp\u202eexe":        `gnp\u202eexe`, // turns the text that follows around
		"no\u00a0break\u200b": `no\u00a0break\u200b`,
		`"quoted"`:            `"quoted"`,
		"":                    "",
	} {
		assert.Equal(t, want, tenant.Show(name))
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { tenant.Show("acme") }))
	acme := "acme"
	assert.Zero(t, testing.AllocsPerRun(10, func() { tenant.Identity(acme) }))
}
