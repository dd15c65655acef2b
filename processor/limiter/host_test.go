// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/otel-governor/otel-governor/extension/governor"
)

// host is a Collector's host with the extensions it is given.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// newTestHost returns a host with a governor that runs, for the generated lifecycle tests. They do not say
// when they are done with it, so it runs until the process ends.
func newTestHost() component.Host {
	g, err := newGovernor(confmap.New())
	if err == nil {
		err = g.Start(context.Background(), componenttest.NewNopHost())
	}
	if err != nil {
		panic(err)
	}
	return host{governorID: g}
}

var governorID = component.MustNewID("governor")

func newGovernor(conf *confmap.Conf) (component.Component, error) {
	f := governor.NewFactory()
	cfg := f.CreateDefaultConfig()
	if err := conf.Unmarshal(cfg); err != nil {
		return nil, err
	}
	set := extensiontest.NewNopSettings(f.Type())
	set.ID = governorID
	return f.Create(context.Background(), set, cfg)
}

// startGovernor returns a host with a real governor that runs on this configuration.
func startGovernor(t *testing.T, conf map[string]any) host {
	t.Helper()
	g, err := newGovernor(confmap.NewFromStringMap(conf))
	require.NoError(t, err)
	h := host{governorID: g}
	require.NoError(t, g.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	return h
}
