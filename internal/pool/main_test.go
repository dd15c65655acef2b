// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The states where a pool can go wrong lie deep: longer runs than rapid's own find them. Flags on the
	// command line come later and win.
	_ = flag.Set("rapid.checks", "1000")
	_ = flag.Set("rapid.steps", "100")
	goleak.VerifyTestMain(m)
}
