// SPDX-License-Identifier: Apache-2.0

// Package vm boots a throwaway Linux machine under qemu and runs one shell
// script in it, so that a story can have a real kernel, a real cgroup v2 tree
// and a real out-of-memory killer without touching those of the host.
//
// It is test support, not a sandbox and not a performance rig: without
// /dev/kvm, and a processor made for it, the guest is emulated, many times
// slower than the host.
//
// # The guest
//
// The machine has no disk, no network card and no kernel modules. Its root
// file system is an initramfs made anew for each boot from busybox, the five
// files under guest/ and what the [Machine] adds. Init mounts proc, sysfs,
// devtmpfs, a tmpfs on /tmp and cgroup2 on /sys/fs/cgroup, brings up the
// loopback interface and runs the script with `sh -eu -o pipefail`. Besides
// busybox the script can call
//
//	result KEY [VALUE...]    report a value, or standard input, to the host
//	await SECONDS COMMAND... repeat COMMAND until it succeeds, then print its output
//	within CGROUP COMMAND... become COMMAND inside the cgroup directory
//	nice -n N COMMAND...     become COMMAND with less priority, which not every busybox can
//
// The root file system lives in memory which the root cgroup paid for at boot:
// the pages of a binary are neither charged to the cgroup it runs in nor
// reclaimed from it. It holds at most half of the machine's memory.
//
// There is one memory controller. A script that wants cgroup v1 or a hybrid
// tree unmounts cgroup2, before it enables anything there, and mounts its own.
//
// # What counts as a pass
//
// The only pass is a script that ended with code 0 and said so. Init reports
// that end on a second serial port, which carries nothing but results, so no
// output of kernel or workload can garble or imitate it. A panic, an oops, a
// machine that powers off early and one that never does are all errors.
package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	defaultMemory  = 1024
	defaultTimeout = 2 * time.Minute

	// psi=1 because some distributions build pressure accounting in but off.
	// panic=-1 restarts at once, which -no-reboot turns into the end of qemu.
	kernelArguments = "console=ttyS0 quiet loglevel=3 psi=1 panic=-1 oops=panic"

	resultsFile   = "results"
	initramfsFile = "initramfs"
)

// Machine describes one boot. The zero value of each field but Script is
// usable.
type Machine struct {
	// Script is the text of the workload. Its exit code is the machine's.
	Script string

	// Files maps an absolute guest path to the host file copied there with
	// its permission bits. Programs must be static and for linux/amd64.
	Files map[string]string

	// Texts maps an absolute guest path to the contents of a plain file.
	Texts map[string]string

	// Memory is the size of the guest's memory in MiB; 1024 if zero. The guest
	// holds the files twice while it boots.
	Memory int

	// CPUs is the number of virtual processors; 1 if zero.
	CPUs int

	// Timeout bounds the life of qemu; two minutes if zero.
	Timeout time.Duration
}

// Result is what came out of a machine. It is filled as far as the machine
// got, also when Run returns an error.
type Result struct {
	// Values holds what the script reported with `result`, by key, without
	// trailing line ends.
	Values map[string]string

	// Console is all that kernel, init and script printed, with plain line ends.
	Console string

	// Elapsed is the time from the start of qemu to its end.
	Elapsed time.Duration
}

// ExitError says that the script ended by itself with a code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("the script exited with code %d", e.Code)
}

// Run boots the machine with the kernel and busybox found in the directory
// cache, copies its console to console (which may be nil) line by line, and
// waits for the power-off. It returns nil only if the script exited with 0, an
// *ExitError if it exited with another code, an error wrapping
// context.DeadlineExceeded if it was still running after m.Timeout, and one
// wrapping the cause of ctx if that was done first. When Run returns, qemu and
// its temporary files are gone. It is safe for concurrent use.
func (m Machine) Run(ctx context.Context, cache string, console io.Writer) (Result, error) {
	if err := Available(cache); err != nil {
		return Result{}, err
	}
	kernel, err := filepath.Abs(filepath.Join(cache, kernelFile))
	if err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp("", "vm-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)

	if err := m.writeInitramfs(filepath.Join(dir, initramfsFile), cache); err != nil {
		return Result{}, fmt.Errorf("initramfs: %w", err)
	}

	timeout := m.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("still running after %v: %w", timeout, context.DeadlineExceeded))
	defer cancel()

	var seen bytes.Buffer
	out := &plainLines{w: &seen}
	if console != nil {
		out.w = io.MultiWriter(&seen, console)
	}
	cmd := exec.CommandContext(ctx, qemu, m.arguments(kernel)...)
	cmd.Dir = dir
	cmd.Stdout = out
	cmd.Stderr = out

	// The thread that starts qemu must outlive it: endWithParent is tied to
	// the thread and not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	endWithParent(cmd)

	start := time.Now()
	err = cmd.Run()
	elapsed := time.Since(start)
	if flushErr := out.flush(); err == nil {
		err = flushErr
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the machine was stopped: %w", context.Cause(ctx))
	} else if err != nil {
		err = fmt.Errorf("%s: %w", qemu, err)
	}

	results, readErr := os.ReadFile(filepath.Join(dir, resultsFile))
	if readErr != nil && err == nil {
		err = readErr
	}
	result, err := verdict(results, seen.String(), err)
	result.Elapsed = elapsed
	return result, err
}

// arguments returns qemu's command line. The paths it writes or shares with a
// -serial option are relative to its working directory, because a comma in an
// absolute one would need quoting.
func (m Machine) arguments(kernel string) []string {
	memory, cpus := m.Memory, m.CPUs
	if memory == 0 {
		memory = defaultMemory
	}
	if cpus == 0 {
		cpus = 1
	}
	args := []string{
		"-no-user-config", "-nodefaults", "-no-reboot",
		"-display", "none", "-monitor", "none",
		"-machine", "pc", "-cpu", "max",
		"-m", strconv.Itoa(memory), "-smp", strconv.Itoa(cpus),
		"-kernel", kernel, "-initrd", initramfsFile, "-append", kernelArguments,
		"-serial", "stdio", "-serial", "file:" + resultsFile,
	}
	if hardwareAcceleration("/proc/cpuinfo") {
		args = append(args, "-accel", "kvm")
	}
	// Given twice, qemu takes the first that works.
	return append(args, "-accel", "tcg")
}

// verdict turns what a machine left behind into what Run returns. A machine
// that was stopped or that qemu could not run has failed whatever it reported.
func verdict(results []byte, console string, runErr error) (Result, error) {
	report, err := parseReport(results)
	result := Result{Values: report.values, Console: console}
	switch {
	case runErr != nil:
		return result, runErr
	case err != nil:
		return result, fmt.Errorf("results: %w", err)
	case !report.ended && strings.Contains(console, "Kernel panic"):
		return result, errors.New("the kernel panicked")
	case !report.ended:
		return result, errors.New("the machine went down before the script ended")
	case report.code != 0:
		return result, &ExitError{Code: report.code}
	}
	return result, nil
}

// plainLines passes on whole lines without the carriage returns a serial
// console adds. qemu writes it byte by byte.
type plainLines struct {
	w    io.Writer
	line []byte // the last one, still open
}

func (p *plainLines) Write(b []byte) (int, error) {
	p.line = append(p.line, bytes.ReplaceAll(b, []byte{'\r'}, nil)...)
	if end := bytes.LastIndexByte(p.line, '\n') + 1; end > 0 {
		if _, err := p.w.Write(p.line[:end]); err != nil {
			return 0, err
		}
		p.line = append(p.line[:0], p.line[end:]...)
	}
	return len(b), nil
}

// flush passes on a last line that was not ended.
func (p *plainLines) flush() error {
	_, err := p.w.Write(p.line)
	p.line = nil
	return err
}
