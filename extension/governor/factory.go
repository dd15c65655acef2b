// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otel-governor/otel-governor/extension/governor/internal/metadata"
)

// NewFactory returns the factory of the governor extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return createDefaultConfig() },
		func(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			return newGovernor(set, cfg.(*Config))
		},
		metadata.ExtensionStability,
	)
}
