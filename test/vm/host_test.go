// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAvailable(t *testing.T) {
	bin, cache := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)

	// Each step adds what the error of the one before complained about.
	for _, missing := range []string{
		filepath.Join(bin, qemu),
		filepath.Join(cache, kernelFile),
		filepath.Join(cache, busyboxFile),
	} {
		wantError(t, Available(cache), "no "+filepath.Base(missing))
		if err := os.WriteFile(missing, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, Available(cache), "")
}

func TestDefaultCache(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	got, err := DefaultCache()
	if want := filepath.Join(top, ".cache", "vm"); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestNoAccelerationWithoutAProcessorForIt(t *testing.T) {
	cpuinfo := filepath.Join(t.TempDir(), "cpuinfo")
	if hardwareAcceleration(cpuinfo) {
		t.Error("the processor is not known")
	}
	for flags, able := range map[string]bool{"fpu vmx_like hypervisor": false, "fpu vmx sse": true, "fpu svm": true} {
		if err := os.WriteFile(cpuinfo, []byte("processor\t: 0\nflags\t\t: "+flags+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
		if err == nil {
			f.Close()
		}
		if got, want := hardwareAcceleration(cpuinfo), able && err == nil; got != want {
			t.Errorf("%s: %v, want %v", flags, got, want)
		}
	}
}
