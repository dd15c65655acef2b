// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/client"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// identity is a tenant's name and whether anybody but the client vouches for it.
type identity struct {
	name    string // empty: nobody is named
	trusted bool
}

// Identify implements admission.Governor.
func (g *governor) Identify(ctx context.Context) (string, bool) {
	if id := g.identify(ctx); id.name != "" {
		return id.name, true
	}
	return tenant.DefaultName, false
}

// identify looks at what authenticated the client first, and then at what it says itself.
func (g *governor) identify(ctx context.Context) identity {
	c := &g.config.Tenants
	if !c.identified() {
		return identity{}
	}
	info := client.FromContext(ctx)
	if info.Auth != nil {
		if name, ok := named(c.AuthAttributes, func(key string) string { return vouched(info.Auth, key) }); ok {
			return identity{name, true}
		}
	}
	name, _ := named(c.MetadataKeys, func(key string) string { return header(info.Metadata, key) })
	return identity{name, false}
}

// named returns the identity that the values of these keys make.
func named(keys []string, value func(string) string) (string, bool) {
	switch len(keys) {
	case 0:
		return "", false
	case 1: // allocates nothing
		return tenant.Identity(value(keys[0]))
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = value(key)
	}
	return tenant.Identity(values...)
}

// vouched is what an authenticator says under this key.
func vouched(auth client.AuthData, key string) string {
	switch v := auth.GetAttribute(key).(type) {
	case nil:
		return ""
	case string:
		return v
	case []string:
		name, _ := tenant.Identity(v...)
		return name
	default:
		return fmt.Sprint(v)
	}
}

// header is what a client sent under this key. One that sent several values is not the same as who sent
// one of them.
func header(metadata client.Metadata, key string) string {
	values := metadata.Get(key)
	if len(values) == 1 {
		return values[0]
	}
	name, _ := tenant.Identity(values...)
	return name
}
