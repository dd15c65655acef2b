// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// client is a process that sends a load.
type client struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *json.Decoder
	log  tail
	into *Tally
}

// startClient starts one that is prepared when it returns. It must be ended.
func startClient(l Load, into *Tally, loose bool) (*client, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cl := &client{cmd: exec.Command("nice", "-n", strconv.Itoa(l.Nice), self), into: into}
	cl.cmd.Env = append(os.Environ(), loadVariable+"="+string(text))
	cl.cmd.Stderr = &cl.log
	if cl.in, err = cl.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cl.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	ready := bufio.NewReader(out)
	cl.said = json.NewDecoder(ready)
	if _, other, ok := two(); ok && !loose {
		err = startOn(other, cl.cmd)
	} else {
		err = start(cl.cmd)
	}
	if err != nil {
		return nil, err
	}
	if said, err := ready.ReadString('\n'); said != "ready\n" {
		cl.end()
		return nil, fmt.Errorf("a client is not ready: %q, %w\n%s", said, err, &cl.log)
	}
	return cl, nil
}

// begin has it send.
func (c *client) begin() { _, _ = io.WriteString(c.in, "\n") }

// told takes what became of it.
func (c *client) told() error {
	if err := c.said.Decode(c.into); err != nil {
		return fmt.Errorf("a client: %w\n%s", err, &c.log)
	}
	return nil
}

// end ends it.
func (c *client) end() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// resident is the most memory, in bytes, that a process has had that ended.
func resident(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return usage.Maxrss
	default:
		return usage.Maxrss << 10
	}
}
