// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "500")
	_ = flag.Set("rapid.steps", "60")
	goleak.VerifyTestMain(m)
}
