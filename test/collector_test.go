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
	yaml     []string // merged over it, in order
	env      []string // NAME=value
	sink     *sink    // what is behind it, as ${env:SINK}
	cgroup   *cgroup  // what it runs in
	profiles bool     // the signal must be turned on by a feature gate
}

// collector is a running process.
type collector struct {
	t                         *testing.T
	grpc, http, metricsServer string // host:port
	log                       *logbook
	cmd                       *exec.Cmd
	exited                    chan struct{} // closed when cmd has been waited for
	tmp                       string        // its TMPDIR, in which nothing may be written
	stopping                  bool
}

// start starts a collector that is ready when start returns, and ends it with the test.
func start(t *testing.T, s setup) *collector {
	t.Helper()
	for range 3 {
		c := launch(t, s)
		_, ready := c.log.nth(1, message("Everything is ready."))
		if ready {
			t.Cleanup(c.end)
			return c
		}
		c.kill()
		if !c.log.has("address already in use") { // somebody was faster at a port
			t.Fatalf("the collector did not start:\n%s", c.log.tail())
		}
	}
	t.Fatal("no free ports")
	return nil
}

// refused starts a collector that must not start, and returns its error.
func refused(t *testing.T, s setup) string {
	t.Helper()
	c := launch(t, s)
	defer c.kill()
	select {
	case <-c.exited:
	case <-time.After(patience):
		t.Fatalf("the collector still runs:\n%s", c.log.tail())
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 1 {
		t.Fatalf("exit code %d, want 1:\n%s", code, c.log.tail())
	}
	found := c.log.all(func(l line) bool { return strings.HasPrefix(l.text("text"), "Error: ") })
	if len(found) != 1 {
		t.Fatalf("%d errors, want one:\n%s", len(found), c.log.tail())
	}
	// What follows the line belongs to it.
	_, message, _ := strings.Cut(c.log.tail(), "Error: ")
	return message
}

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

// wantExit waits for the process to end with code 0.
func (c *collector) wantExit() {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(patience):
		c.t.Errorf("the collector did not end within %v", patience)
		return
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		c.t.Errorf("exit code %d, want 0", code)
	}
}

// end ends the process with its test. One that ended before is a failure.
func (c *collector) end() {
	select {
	case <-c.exited:
		if !c.stopping {
			c.t.Errorf("the collector died: %v", c.cmd.ProcessState)
		}
	default:
		c.terminate()
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
