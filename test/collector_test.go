// SPDX-License-Identifier: Apache-2.0

// Package test tells stories over the collector that `make build` makes: a process with real clients in
// front of it, a real server behind it and, where the machine allows one, a real memory limit around it.
package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	binary = "../bin/otelcol-governor"
	// patience is how long a test waits for what should come at once, on a machine that does other things.
	patience = 30 * time.Second
)

// setup says how a collector is started.
type setup struct {
	config   string   // a file of ../testdata
	yaml     []string // merged over it, in order; "::" only at the top, below it confmap loses keys
	env      []string // NAME=value
	sink     *sink    // what is behind it, as ${env:SINK}
	cgroup   *cgroup  // what it runs in
	mounts   *mounts  // what it sees of the file system
	profiles bool     // the signal must be turned on by a feature gate
	traced   bool     // it tells of its garbage collections
}

// collector is a running process.
type collector struct {
	t                         *testing.T
	grpc, http, metricsServer string // host:port
	log                       *logbook
	gcs                       *gcTrace // nil unless traced
	cmd                       *exec.Cmd
	exited                    chan struct{} // closed when cmd has been waited for
	tmp                       string        // its TMPDIR, in which nothing may be written
	stopping                  bool
}

// start starts a collector that is ready when start returns, and ends it with the test.
func start(t *testing.T, s setup) *collector {
	t.Helper()
	return attempt(t, s, func(c *collector) bool {
		if _, ready := c.log.nth(1, message("Everything is ready.")); !ready {
			return false
		}
		t.Cleanup(c.end)
		return true
	})
}

// refused starts a collector that must not start, and returns its error.
func refused(t *testing.T, s setup) string {
	t.Helper()
	c := attempt(t, s, func(c *collector) bool { return c.exitCode() == 1 && !c.portTaken() })
	c.kill()
	// The error may have several lines; nothing comes after it.
	_, message, found := strings.Cut(c.log.text(), "Error: ")
	if !found {
		t.Fatalf("no error:\n%s", c.log.tail())
	}
	return message
}

// attempt launches a collector that does what it should. One that does not fails the test, unless somebody
// was faster at one of its ports.
func attempt(t *testing.T, s setup, does func(*collector) bool) *collector {
	t.Helper()
	for range 3 {
		c := launch(t, s)
		if does(c) {
			return c
		}
		c.kill()
		if !c.portTaken() {
			t.Fatalf("the collector did not do what it should, %v:\n%s", c.cmd.ProcessState, c.log.tail())
		}
	}
	t.Fatal("no free ports")
	return nil
}

func (c *collector) portTaken() bool { return strings.Contains(c.log.text(), "address already in use") }

// launch starts the process and does not wait for it to be ready.
func launch(t *testing.T, s setup) *collector {
	t.Helper()
	c := &collector{
		t: t, log: newLogbook(), exited: make(chan struct{}), tmp: t.TempDir(),
		grpc: freeAddress(t), http: freeAddress(t), metricsServer: freeAddress(t),
	}
	args := append([]string{collectorBinary(t), "--config", "../testdata/" + s.config}, c.own()...)
	for _, y := range s.yaml {
		args = append(args, "--config", "yaml:"+y)
	}
	if s.profiles {
		args = append(args, "--feature-gates", "service.profilesSupport")
	}
	if s.traced { // on stderr, one word at a time, where no log can come in between
		args = append(args, "--config", "yaml:service::telemetry::logs::output_paths: [stdout]")
	}
	if s.mounts != nil {
		args = s.mounts.within(args)
	}
	if s.cgroup != nil {
		args = s.cgroup.within(args)
	}
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Env = append(environment(), "TMPDIR="+c.tmp)
	if s.sink != nil {
		c.cmd.Env = append(c.cmd.Env, "SINK="+s.sink.address)
	}
	c.cmd.Env = append(c.cmd.Env, s.env...)
	c.cmd.SysProcAttr = attributes()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr = in, in
	if s.traced {
		c.gcs = &gcTrace{others: c.log}
		c.cmd.Stderr, c.cmd.Env = c.gcs, append(c.cmd.Env, "GODEBUG=gctrace=1")
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go func() {
		c.log.read(out)
		out.Close()
		_ = c.cmd.Wait() // its state is what counts
		close(c.exited)
	}()
	return c
}

// own is configuration that every collector of a test has: ports of its own, and a log to be read.
func (c *collector) own() []string {
	_, port, _ := net.SplitHostPort(c.metricsServer)
	return []string{
		"--config", fmt.Sprintf("yaml:receivers::otlp::protocols: {grpc: {endpoint: '%s', max_recv_msg_size_mib: 64},"+
			" http: {endpoint: '%s', max_request_body_size: 100000000}}", c.grpc, c.http),
		"--config", fmt.Sprintf("yaml:service::telemetry: {logs: {encoding: json}, metrics:"+
			" {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}}]}}", port),
	}
}

// environment is what collectors of all tests start with: nothing that sizes Go's heap.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name != "GOMEMLIMIT" && name != "GOGC" && name != "TMPDIR" {
			env = append(env, e)
		}
	}
	return env
}

func (c *collector) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("%v: %v", s, err)
	}
}

// terminate asks the process to end and waits for it to do so in peace.
func (c *collector) terminate() {
	c.t.Helper()
	c.stopping = true
	c.signal(syscall.SIGTERM)
	c.wantExit()
}

// diedOf waits for the process to end and says whether it was by the default action of a signal.
func (c *collector) diedOf(s syscall.Signal) bool {
	c.exitCode()
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == s
}

// wantExit waits for the process to end with code 0.
func (c *collector) wantExit() {
	c.t.Helper()
	if code := c.exitCode(); code != 0 {
		c.t.Errorf("exit code %d, want 0: %v", code, c.cmd.ProcessState)
	}
}

// exitCode waits for the process to end. It kills one that does not; then, and after any other signal, the
// code is -1.
func (c *collector) exitCode() int {
	select {
	case <-c.exited:
	case <-time.After(patience):
		c.kill()
	}
	return c.cmd.ProcessState.ExitCode()
}

// end ends the process with its test. One that ended before is a failure.
func (c *collector) end() {
	select {
	case <-c.exited:
		if !c.stopping {
			c.t.Errorf("the collector died: %v", c.cmd.ProcessState)
		}
	default:
		c.stopping = true
		c.signal(syscall.SIGTERM)
		// The Collector asks for signals a moment after it says that it is ready. One that is told to end
		// before dies of the signal, which is not what a story is about that did not ask for it.
		if !c.diedOf(syscall.SIGTERM) {
			c.wantExit()
		}
	}
	c.kill()
	if files, err := os.ReadDir(c.tmp); err != nil || len(files) > 0 {
		c.t.Errorf("TMPDIR holds %v, %v, want nothing", files, err)
	}
	if c.t.Failed() {
		c.t.Logf("the end of the collector's log:\n%s", c.log.tail())
	}
}

// kill ends the process, if it still runs, without asking.
func (c *collector) kill() {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Error(err)
	}
	<-c.exited
}

func collectorBinary(t *testing.T) string { return built(t, binary, "make build") }

// built returns the path of a program that another target makes.
func built(t *testing.T, path, by string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(abs); err != nil {
		t.Fatalf("there is no %s: run %s first", path, by)
	}
	return abs
}

var taken sync.Map // ports that this process has given to somebody

// freeAddress returns a loopback address that nobody listens at. It is below the ports that systems give to
// clients, so that hardly anybody takes it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if _, known := taken.LoadOrStore(address, true); known {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		return address
	}
	t.Fatal("no free port")
	return ""
}
