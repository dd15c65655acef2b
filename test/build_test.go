// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"testing"
)

// TestComponentsBuildEverywhere compiles both components for every platform that they support.
func TestComponentsBuildEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped, not passed: -short")
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, goarch := range []string{"amd64", "arm64"} {
			t.Run(goos+"/"+goarch, func(t *testing.T) {
				cmd := exec.Command("go", "build", "./extension/...", "./processor/...")
				cmd.Dir = ".."
				cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
