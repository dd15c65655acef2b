// SPDX-License-Identifier: Apache-2.0

//go:build stories

package vm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/vm"
)

// cache returns the cache directory, or skips the test where no machine boots.
func cache(t *testing.T) string {
	t.Helper()
	dir, err := vm.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.Available(dir); err != nil {
		t.Skipf("skipped, not passed: %v", err)
	}
	return dir
}

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mustRun returns the values of a machine whose script exited with 0.
func mustRun(t *testing.T, m vm.Machine) map[string]string {
	t.Helper()
	result, err := m.Run(t.Context(), cache(t), t.Output())
	if err != nil {
		t.Fatalf("after %v: %v", result.Elapsed, err)
	}
	t.Logf("the machine ran for %v", result.Elapsed.Round(10*time.Millisecond))
	return result.Values
}

func wantValues(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s = %q, want %q", key, got[key], value)
		}
	}
}

func wantLines(t *testing.T, key, got string, want ...string) {
	t.Helper()
	lines := "\n" + got + "\n"
	for _, line := range want {
		if !strings.Contains(lines, "\n"+line+"\n") {
			t.Errorf("%s has no line %q:\n%s", key, line, got)
		}
	}
}

func TestCgroupLimitsPressureAndKill(t *testing.T) {
	got := mustRun(t, vm.Machine{Script: script(t, "cgroups.sh")})

	wantValues(t, got, map[string]string{
		"filesystem-magic": "63677270", // CGROUP2_SUPER_MAGIC of linux/magic.h
		"leaf-cgroup":      "0::/parent/leaf",
		"parent-max":       "536870912",
		"leaf-max":         "max",
		"leaf-high":        "268435456",
		"killed-code":      "137",
	})
	if !strings.Contains(" "+got["controllers"]+" ", " memory ") {
		t.Errorf("controllers = %q, want memory among them", got["controllers"])
	}
	if !strings.Contains(got["leaf-mountinfo"], " / /sys/fs/cgroup ") {
		t.Errorf("leaf-mountinfo = %q, want the root mounted on /sys/fs/cgroup", got["leaf-mountinfo"])
	}
	for _, kind := range []string{"some", "full"} {
		if !strings.Contains("\n"+got["leaf-pressure"], "\n"+kind+" avg10=") {
			t.Errorf("leaf-pressure has no line of %s:\n%s", kind, got["leaf-pressure"])
		}
	}
	wantLines(t, "small-events", got["small-events"], "oom_kill 1")
}

func TestHybridTree(t *testing.T) {
	got := mustRun(t, vm.Machine{Script: script(t, "hybrid.sh")})

	wantLines(t, "self", got["self"], "1:memory:/group", "0::/")
	wantValues(t, got, map[string]string{
		"limit":      "104857600",
		"root-limit": "9223372036854771712", // unlimited: the last whole page below 1<<63
	})
	wantLines(t, "stat", got["stat"], "hierarchical_memory_limit 104857600")
}

func TestServerInLimitedCgroup(t *testing.T) {
	cache(t) // skip before the build
	server := filepath.Join(t.TempDir(), "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", server, "./testdata/server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	got := mustRun(t, vm.Machine{
		Script: script(t, "collector.sh"),
		Files:  map[string]string{"/bin/server": server},
		Texts:  map[string]string{"/batch.json": `{"resourceLogs":[]}`},
	})
	wantValues(t, got, map[string]string{
		"limit-at-start":     "268435456",
		"reply":              "19 bytes of application/json",
		"limit-after-resize": "335544320",
		"cgroup":             "0::/pod/container",
		"server-code":        "0",
	})
	wantLines(t, "events", got["events"], "oom 0", "oom_kill 0")
}

func TestSeveralProcessors(t *testing.T) {
	got := mustRun(t, vm.Machine{CPUs: 2, Script: "result processors \"$(nproc)\"\n"})
	wantValues(t, got, map[string]string{"processors": "2"})
}

func TestExitCodeIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   int
	}{
		"exit":                    {"result before yes\nexit 7\n", 7},
		"failed command":          {"result before yes\nfalse\nexit 0\n", 1},
		"failed start of a pipe":  {"result before yes\nfalse | cat\nexit 0\n", 1},
		"unset variable":          {"result before yes\necho $nothing\nexit 0\n", 2},
		"killed":                  {"result before yes\nkill -9 $$\n", 137},
		"patience of await ended": {"result before yes\nawait 1 false\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := vm.Machine{Script: c.script}.Run(t.Context(), cache(t), t.Output())
			var exit *vm.ExitError
			if !errors.As(err, &exit) || exit.Code != c.code {
				t.Fatalf("error = %v, want exit code %d", err, c.code)
			}
			wantValues(t, result.Values, map[string]string{"before": "yes"})
		})
	}
}

func TestEarlyEndIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"power off": {"poweroff -f\n", "went down before the script ended"},
		"panic":     {"echo c >/proc/sysrq-trigger\n", "panicked"},
		"forged":    {"echo 'exit 0' >/dev/ttyS1\n", "after the end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := vm.Machine{Script: c.script}.Run(t.Context(), cache(t), t.Output())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestHangIsAnError(t *testing.T) {
	m := vm.Machine{Script: "sleep 1000\n", Timeout: 3 * time.Second}
	_, err := m.Run(t.Context(), cache(t), t.Output())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error = %v, want the deadline exceeded", err)
	}
}

func TestCancelStopsTheMachine(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	console := writerFunc(func(b []byte) (int, error) {
		if string(b) == "now\n" {
			cancel(enough)
		}
		return t.Output().Write(b)
	})
	result, err := vm.Machine{Script: "result before yes\necho now\nsleep 1000\n"}.Run(ctx, cache(t), console)
	if !errors.Is(err, enough) {
		t.Fatalf("error = %v, want %v", err, enough)
	}
	wantValues(t, result.Values, map[string]string{"before": "yes"})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
