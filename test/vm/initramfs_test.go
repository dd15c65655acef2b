// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// entry is what the kernel makes of one entry of an archive.
type entry struct {
	mode uint64
	data string
}

// entries reads a newc archive as the kernel does, so that a header out of
// order or a missing pad shows here and not as a guest that does not boot.
func entries(t *testing.T, b []byte) map[string]entry {
	t.Helper()
	got := map[string]entry{}
	for at := 0; ; {
		if string(b[at:at+6]) != "070701" {
			t.Fatalf("no magic at %d", at)
		}
		word := func(i int) uint64 {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		mode, size, nameSize := word(1), int(word(6)), int(word(11))
		name := string(b[at+110 : at+110+nameSize-1])
		data := (at + 110 + nameSize + 3) / 4 * 4
		if name == "TRAILER!!!" {
			if data != len(b) {
				t.Errorf("%d bytes after the trailer", len(b)-data)
			}
			return got
		}
		got[name] = entry{mode, string(b[data : data+size])}
		at = (data + size + 3) / 4 * 4
	}
}

func TestWriteInitramfs(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	for _, file := range []string{tool, filepath.Join(dir, busyboxFile)} {
		if err := os.WriteFile(file, []byte("12345"), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	m := Machine{
		Script: "true\n",
		Files:  map[string]string{"/opt/a/tool": tool},
		Texts:  map[string]string{"/etc/config": "abc"},
	}
	name := filepath.Join(dir, "out")
	if err := m.writeInitramfs(name, dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := entries(t, b)
	for name, want := range map[string]entry{
		"story":       {0o100644, "true\n"},
		"opt":         {0o040755, ""},
		"opt/a":       {0o040755, ""},
		"opt/a/tool":  {0o100750, "12345"},
		"etc/config":  {0o100644, "abc"},
		"dev/console": {0o020600, ""},
		"bin/busybox": {0o100750, "12345"},
	} {
		if got[name] != want {
			t.Errorf("%s = %+v, want %+v", name, got[name], want)
		}
	}
	if mode := got["init"].mode; mode != 0o100755 {
		t.Errorf("init has mode %o", mode)
	}
}

func TestArchiveRefuses(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"relative":  {"bin/x", "clean absolute"},
		"not clean": {"/bin/../x", "clean absolute"},
		"directory": {"/bin/", "clean absolute"},
		"twice":     {"/init", "there already"},
		"root":      {"/", "there already"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &archive{w: io.Discard, seen: map[string]bool{"/": true}}
			if err := a.text("/init", 0o644, ""); err != nil {
				t.Fatal(err)
			}
			wantError(t, a.text(c.path, 0o644, ""), c.want)
		})
	}
	t.Run("short data", func(t *testing.T) {
		a := &archive{w: io.Discard, seen: map[string]bool{"/": true}}
		wantError(t, a.entry("/x", typeRegular, 0, 0, 5, bytes.NewReader(nil)), "EOF")
	})
}
