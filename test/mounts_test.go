// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mounts are what a collector alone sees of the file system. They end with it.
type mounts struct {
	t        *testing.T
	commands []string
}

// newMounts skips the test, with a line that says why, where nobody may mount.
func newMounts(t *testing.T) *mounts {
	t.Helper()
	m := &mounts{t: t}
	try := m.within([]string{"/bin/true"})
	if out, err := exec.Command(try[0], try[1:]...).CombinedOutput(); err != nil {
		t.Skipf("skipped, not passed: no mount namespace can be made here: %v: %s", err, out)
	}
	return m
}

// tmpfs mounts a new file system of so many bytes, of which some are taken, and returns where.
func (m *mounts) tmpfs(size, taken int64) (dir string) {
	m.t.Helper()
	dir = m.t.TempDir()
	m.commands = append(m.commands, fmt.Sprintf("mount -t tmpfs -o size=%d tmpfs '%s'", size, dir),
		fmt.Sprintf("head -c %d /dev/zero >'%s/taken'", taken, dir))
	return dir
}

// mask puts a copy in the place of a file. A file that is not there skips the test.
func (m *mounts) mask(path string) *mask {
	m.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		m.t.Skipf("skipped, not passed: %v", err)
	}
	k := &mask{m.t, filepath.Join(m.t.TempDir(), filepath.Base(path)), text}
	k.mend()
	m.commands = append(m.commands, fmt.Sprintf("mount --bind '%s' '%s'", k.path, path))
	return k
}

// mask is a copy that a collector sees in the place of a file of the kernel's.
type mask struct {
	t    *testing.T
	path string
	text []byte
}

// spoil makes it say nothing where it had figures.
func (k *mask) spoil() { k.write(digits.ReplaceAll(k.text, []byte("?"))) }

var digits = regexp.MustCompile("[0-9]+")

// mend makes it again what it was.
func (k *mask) mend() { k.write(k.text) }

func (k *mask) write(text []byte) {
	k.t.Helper()
	if err := os.WriteFile(k.path, text, 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// within returns a command that mounts and becomes args.
func (m *mounts) within(args []string) []string {
	script := strings.Join(append(m.commands, `exec "$@"`), " && ")
	return append([]string{"unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"}, args...)
}
