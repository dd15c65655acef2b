// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// tenantsInterval is how often idle tenants are looked for and the overrides file is looked at.
const tenantsInterval = time.Second

// newTenants makes the registry, of those that are configured and those that will come.
func (g *governor) newTenants() {
	c := &g.config.Tenants
	g.identified.Store(c.identified())
	if len(c.Allow) > 0 {
		g.allowed = map[string]bool{}
		for _, name := range c.Allow {
			g.allowed[name] = true
		}
	}
	follow := func(t *member) { g.pool.SetLimits(&t.Value.pool, g.limits(t)) }
	settings := tenant.Settings[account]{
		MaxTracked:  c.MaxTracked,
		IdleTimeout: c.IdleTimeout,
		Defaults:    c.ceilings(),
		Init: func(t *member) {
			t.Value.carrier.Init(func(delta int64) { g.pool.Carry(&t.Value.pool, delta) })
			follow(t)
		},
		Changed: follow,
	}
	if len(c.AuthAttributes) > 0 { // names that anybody can invent leave places for those that nobody can
		settings.MaxUntrusted = max(1, c.MaxTracked*3/4)
	}
	g.tenants = tenant.New(settings)
	g.override(c.Overrides)
}

// tellApart makes the default tenant one among others: somebody names tenants.
func (g *governor) tellApart() {
	if g.identified.CompareAndSwap(false, true) {
		t := g.tenants.Default()
		g.pool.SetLimits(&t.Value.pool, g.limits(t))
	}
}

// warnOfTenants says what has no effect because nothing tells tenants apart. By now every limiter has said
// whether it does.
func (g *governor) warnOfTenants() {
	c := &g.config.Tenants
	set := c.Defaults != (tenant.Override{}) || len(c.Overrides) > 0 || c.OverridesFile != ""
	if g.identified.Load() || !set && len(c.Allow) == 0 {
		return
	}
	g.logger.Warn("Nothing tells tenants apart, so 'tenants::allow', 'tenants::defaults' and overrides have no effect;" +
		" set 'tenants::auth_attributes' or 'tenants::metadata_keys', or 'tenant_attribute' on a limiter")
}

// override puts the tenants under these overrides.
func (g *governor) override(overrides map[string]tenant.Override) {
	bytes := g.config.Tenants.ceilings().Rate.Bytes > 0
	for o := range maps.Values(overrides) {
		bytes = bytes || o.Rate.Bytes != nil && *o.Rate.Bytes > 0
	}
	g.countsBytes.Store(bytes)
	g.tenants.SetOverrides(overrides)
}

// loadOverrides reads the overrides file for the first time, when it must be right.
func (g *governor) loadOverrides() error {
	path := g.config.Tenants.OverridesFile
	if path == "" {
		return nil
	}
	f, err := tenant.OpenOverrides(path, g.config.parseOverrides)
	if err != nil {
		return fmt.Errorf("'tenants::overrides_file': %w", err)
	}
	g.overrides = f
	g.override(f.Overrides())
	return nil
}

// reloadOverrides follows the overrides file. A broken one changes nothing.
func (g *governor) reloadOverrides() {
	if g.overrides == nil {
		return
	}
	switch changed, err := g.overrides.Reload(); {
	case err != nil:
		g.logger.Error("The overrides file cannot be used; the last good one stays in force", zap.Error(err))
	case changed:
		overrides := g.overrides.Overrides()
		g.override(overrides)
		g.logger.Info("Overrides reloaded", zap.Int("tenants", len(overrides)))
	}
}
