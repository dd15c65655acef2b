// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"embed"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed guest
var guest embed.FS

// File types of the mode word of an archive entry.
const (
	typeDirectory = 0o040000
	typeDevice    = 0o020000 // character device
	typeRegular   = 0o100000
)

// writeInitramfs writes the machine's root file system. It is not compressed:
// handing a collector over whole is quicker than having the host deflate it
// and an emulated processor inflate it.
func (m Machine) writeInitramfs(name, cache string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	buffered := bufio.NewWriter(f)
	a := &archive{w: buffered, seen: map[string]bool{"/": true}}
	if err := m.fill(a, cache); err != nil {
		return err
	}
	if err := a.close(); err != nil {
		return err
	}
	return buffered.Flush()
}

func (m Machine) fill(a *archive, cache string) error {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/tmp", "/etc"} {
		if err := a.directory(dir); err != nil {
			return err
		}
	}
	// Init's own output needs a console before it has mounted /dev.
	if err := a.device("/dev/console", 5, 1); err != nil {
		return err
	}
	for _, file := range []struct{ to, from string }{
		{"/init", "guest/init"},
		{"/bin/await", "guest/await"},
		{"/bin/nice", "guest/nice"},
		{"/bin/result", "guest/result"},
		{"/bin/within", "guest/within"},
	} {
		text, err := guest.ReadFile(file.from)
		if err != nil {
			return err
		}
		if err := a.text(file.to, 0o755, string(text)); err != nil {
			return err
		}
	}
	if err := a.text("/story", 0o644, m.Script); err != nil {
		return err
	}
	if err := a.copy("/bin/busybox", filepath.Join(cache, busyboxFile)); err != nil {
		return err
	}
	for _, to := range slices.Sorted(maps.Keys(m.Texts)) {
		if err := a.text(to, 0o644, m.Texts[to]); err != nil {
			return err
		}
	}
	for _, to := range slices.Sorted(maps.Keys(m.Files)) {
		if err := a.copy(to, m.Files[to]); err != nil {
			return err
		}
	}
	return nil
}

// archive writes the format the kernel's initramfs.c reads, "newc" cpio: a
// header of 8-digit hexadecimal words, the name, the data, each padded to four
// bytes. It makes the directories above an entry and refuses a path twice.
type archive struct {
	w    io.Writer
	seen map[string]bool
}

func (a *archive) text(name string, permissions uint32, text string) error {
	return a.entry(name, typeRegular|permissions, 0, 0, int64(len(text)), strings.NewReader(text))
}

func (a *archive) copy(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	return a.entry(name, typeRegular|uint32(info.Mode().Perm()), 0, 0, info.Size(), f)
}

func (a *archive) device(name string, major, minor uint32) error {
	return a.entry(name, typeDevice|0o600, major, minor, 0, nil)
}

func (a *archive) directory(name string) error {
	if a.seen[name] {
		return nil
	}
	return a.entry(name, typeDirectory|0o755, 0, 0, 0, nil)
}

func (a *archive) entry(name string, mode, major, minor uint32, size int64, data io.Reader) error {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return fmt.Errorf("%q is not a clean absolute path", name)
	}
	if a.seen[name] {
		return fmt.Errorf("%s is there already", name)
	}
	if err := a.directory(path.Dir(name)); err != nil {
		return err
	}
	a.seen[name] = true
	return a.write(name[1:], mode, major, minor, size, data)
}

// close writes the entry that ends an archive.
func (a *archive) close() error {
	return a.write("TRAILER!!!", 0, 0, 0, 0, nil)
}

func (a *archive) write(name string, mode, major, minor uint32, size int64, data io.Reader) error {
	if size > 0xffffffff {
		return fmt.Errorf("%s is too large for an initramfs", name)
	}
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		0,                // inode: with one link each the kernel never compares it
		mode, 0, 0, 1, 0, // mode, owner, group, links, modification time
		size, 0, 0, // size, major and minor of the device it came from
		major, minor, // of the device it is
		len(name)+1, 0, // name with its terminating zero, checksum
	) + name + "\x00"
	if _, err := io.WriteString(a.w, header+padding(int64(len(header)))); err != nil {
		return err
	}
	if size > 0 {
		if _, err := io.CopyN(a.w, data, size); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := io.WriteString(a.w, padding(size))
	return err
}

// padding returns what brings n bytes to a multiple of four.
func padding(n int64) string {
	return "\x00\x00\x00"[:-n&3]
}
