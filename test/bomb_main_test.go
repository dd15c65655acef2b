// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/otel-governor/otel-governor/test/bomb"
)

func TestMain(m *testing.M) {
	bomb.BecomeClient() // does not return in a process that is one
	m.Run()
}
