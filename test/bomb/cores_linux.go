// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// processors is a set of them, as the kernel has it.
type processors [16]uint64

// affinity reads or sets which processors the thread may use.
func (p *processors) affinity(call uintptr) error {
	if _, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*p), uintptr(unsafe.Pointer(p))); errno != 0 {
		return errno
	}
	return nil
}

// two returns two processors that this process may use.
func two() (one, other int, ok bool) {
	var p processors
	if p.affinity(syscall.SYS_SCHED_GETAFFINITY) != nil {
		return 0, 0, false
	}
	var all []int
	for n := range len(p) * 64 {
		if p[n/64]>>(n%64)&1 == 1 {
			all = append(all, n)
		}
	}
	if len(all) < 2 {
		return 0, 0, false
	}
	return all[0], all[1], true
}

// startOn starts a command that the kernel ends with this process, on one processor: it inherits that from the
// thread that starts it, so that Go in it counts one processor.
func startOn(processor int, cmd *exec.Cmd) error {
	var before, only processors
	only[processor/64] = 1 << (processor % 64)
	runtime.LockOSThread()
	if err := before.affinity(syscall.SYS_SCHED_GETAFFINITY); err != nil {
		return err
	}
	if err := only.affinity(syscall.SYS_SCHED_SETAFFINITY); err != nil {
		return err
	}
	err := start(cmd)
	if err := before.affinity(syscall.SYS_SCHED_SETAFFINITY); err != nil {
		return err // and the thread stays locked, for it is of no use to others
	}
	runtime.UnlockOSThread()
	return err
}

// start starts a command that the kernel ends with this process.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Start()
}
