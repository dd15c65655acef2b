// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Verdicts need many steps to go wrong. Flags on the command line come later and win.
	_ = flag.Set("rapid.checks", "100")
	_ = flag.Set("rapid.steps", "60")
	goleak.VerifyTestMain(m)
}
