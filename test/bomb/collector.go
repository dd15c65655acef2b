// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// every is the configuration of all collectors here: OTLP in, nothing out.
const every = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: '%s', include_metadata: true}
      http: {endpoint: '%s', include_metadata: true}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [nop]}
    metrics: {receivers: [otlp], exporters: [nop]}
    logs: {receivers: [otlp], exporters: [nop]}
  telemetry:
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}
`

// MemoryLimiter is what a collector has that is protected by the Collector's own processor.
const MemoryLimiter = `
processors: {memory_limiter: {check_interval: 1s, limit_percentage: 80, spike_limit_percentage: 20}}
service::pipelines::traces::processors: [memory_limiter]
service::pipelines::metrics::processors: [memory_limiter]
service::pipelines::logs::processors: [memory_limiter]
`

// Governor is what a collector has that is governed. The two tenants are known by name, and have their defaults.
const Governor = `
extensions: {governor: {tenants: {metadata_keys: [` + Header + `], overrides: {neighbor: {}, offender: {}}}}}
processors: {limiter: }
receivers::otlp::protocols::grpc::middlewares: [{id: governor}]
receivers::otlp::protocols::http::middlewares: [{id: governor}]
service::extensions: [governor]
service::pipelines::traces::processors: [limiter]
service::pipelines::metrics::processors: [limiter]
service::pipelines::logs::processors: [limiter]
`

// Collector is a collector that is started again whenever it ends.
type Collector struct {
	GRPC, HTTP, Metrics string // host:port

	loose   bool
	cgroup  cgroup
	ungroup error // why it is in none
	args    []string
	log     tail
	done    chan struct{} // closed when it is not started again

	mu       sync.Mutex
	cmd      *exec.Cmd
	stopping bool
	ends     int64
	resident int64 // bytes, the most that a process has had that ended
}

// startCollector starts a collector that is ready when it returns. It must be stopped.
func startCollector(o Contest) (*Collector, error) {
	c := &Collector{loose: o.Loose, done: make(chan struct{})}
	c.cgroup, c.ungroup = newCgroup(o.Limit)
	ports := make([]int, 3)
	for i := range ports {
		ports[i] = freePort()
	}
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	c.GRPC, c.HTTP, c.Metrics = address(0), address(1), address(2)
	c.args = []string{o.Binary, "--config", "yaml:" + fmt.Sprintf(every, c.GRPC, c.HTTP, ports[2])}
	for _, y := range o.YAML {
		c.args = append(c.args, "--config", "yaml:"+y)
	}
	c.args = c.cgroup.within(c.args)
	if err := c.launch(); err != nil {
		return nil, errors.Join(err, c.cgroup.remove())
	}
	go c.keep()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		switch {
		case strings.Contains(c.log.String(), "Everything is ready."):
			return c, nil
		case c.ended() > 0, time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("the collector does not start:\n%s", &c.log), c.stop(), c.cgroup.remove())
		}
	}
}

// launch starts the process.
func (c *Collector) launch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return errors.New("stopping")
	}
	c.cmd = exec.Command(c.args[0], c.args[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "GOGC=")
	})
	if one, _, ok := two(); ok && !c.loose {
		return startOn(one, c.cmd)
	}
	return start(c.cmd)
}

// keep starts the process again whenever it has ended.
func (c *Collector) keep() {
	defer close(c.done)
	for {
		_ = c.cmd.Wait() // its end is what counts
		c.mu.Lock()
		c.resident = max(c.resident, resident(c.cmd.ProcessState))
		if !c.stopping {
			c.ends++
		}
		c.mu.Unlock()
		if c.launch() != nil {
			return
		}
	}
}

// ended is how often the process has ended without being asked to.
func (c *Collector) ended() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends
}

// stop ends the collector, for good.
func (c *Collector) stop() error {
	c.mu.Lock()
	c.stopping = true
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	c.mu.Unlock()
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		err = errors.Join(errors.New("the collector does not stop"), c.cmd.Process.Kill())
		<-c.done
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	const most = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(b)
	if over := t.text.Len() - most; over > 0 {
		t.text.Next(over)
	}
	return len(b), nil
}

// String is what is left of it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// freePort returns a port that nobody listens at, below those that systems give to clients.
func freePort() int {
	for {
		port := 10000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
}
