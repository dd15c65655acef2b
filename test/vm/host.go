// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	qemu = "qemu-system-x86_64"

	// Names inside the cache directory, agreed with prepare.sh.
	kernelFile  = "vmlinuz"
	busyboxFile = "busybox"
)

// Available returns nil if this host can boot a machine with the files in the
// directory cache, else an error that names everything missing.
func Available(cache string) error {
	var errs []error
	if _, err := exec.LookPath(qemu); err != nil {
		errs = append(errs, fmt.Errorf("no %s in PATH", qemu))
	}
	for _, name := range []string{kernelFile, busyboxFile} {
		if info, err := os.Stat(filepath.Join(cache, name)); err != nil || !info.Mode().IsRegular() {
			errs = append(errs, fmt.Errorf("no %s in %s", name, cache))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("cannot boot a machine, run test/vm/prepare.sh: %w", errors.Join(errs...))
}

// DefaultCache returns the cache directory prepare.sh fills when it is given
// none: .cache/vm beside the go.mod that governs the working directory.
func DefaultCache() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "vm"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// hardwareAcceleration reports whether this process may use /dev/kvm and the
// processor, as /proc/cpuinfo has it, helps with that. Where it does not there
// can be a KVM all the same, made in software for kernels that know it. It takes
// minutes for what qemu's own emulation does in a second, and then gives up.
func hardwareAcceleration(cpuinfo string) bool {
	text, err := os.ReadFile(cpuinfo)
	if err != nil || !slices.ContainsFunc(strings.Fields(string(text)), func(flag string) bool {
		return flag == "vmx" || flag == "svm"
	}) {
		return false
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
