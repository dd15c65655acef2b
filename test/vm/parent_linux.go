// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the command if this process dies without
// having done so, as a test binary does at `go test -timeout`.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
