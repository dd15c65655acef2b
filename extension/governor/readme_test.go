// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// The settings in the README are the defaults, all of them.
func TestREADMEShowsTheDefaults(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, block)
	r, err := confmap.NewRetrievedFromYAML(block[1])
	require.NoError(t, err)
	conf, err := r.AsConf()
	require.NoError(t, err)
	sub, err := conf.Sub("extensions::governor")
	require.NoError(t, err)

	shown := &Config{}
	require.NoError(t, shown.Unmarshal(sub))
	require.Equal(t, builtin, shown.Tenants.ceilings())
	shown.Tenants.Defaults, shown.Tenants.Overrides = tenant.Override{}, nil
	require.Equal(t, createDefaultConfig(), shown)

	require.ElementsMatch(t, keys(reflect.TypeFor[Config](), ""), sub.AllKeys())
}

// keys are the keys that a configuration of this type takes.
func keys(t reflect.Type, prefix string) (all []string) {
	for f := range t.Fields() {
		key := prefix + f.Tag.Get("mapstructure")
		if f.Type.Kind() == reflect.Struct {
			all = append(all, keys(f.Type, key+confmap.KeyDelimiter)...)
		} else {
			all = append(all, key)
		}
	}
	return all
}
