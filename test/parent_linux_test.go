// SPDX-License-Identifier: Apache-2.0

package test

import "syscall"

// attributes makes the kernel end a collector whose test process dies without having done so, as it does
// at `go test -timeout`. The signal is tied to the thread that started the process, which is why tests
// must not end threads.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
