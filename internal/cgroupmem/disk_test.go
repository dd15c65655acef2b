// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// disk is a tree whose files are kept open and change meanwhile, as those of a
// kernel do.
type disk struct {
	files  map[string]*inode
	opened map[string]int // how often each was asked for
	held   int            // handles that are open
}

// inode is a file whatever its name: who removes it and makes it again has two.
type inode struct {
	name    string
	text    string
	openErr error
	readErr error
}

func (t tree) disk() *disk {
	d := &disk{files: map[string]*inode{}, opened: map[string]int{}}
	for name, text := range t {
		d.write(name, text)
	}
	return d
}

func (d *disk) reader() *Reader {
	return &Reader{root: "/", open: d.open, read: func(file string) ([]byte, error) {
		h, err := d.open(file)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		return io.ReadAll(io.NewSectionReader(h, 0, 1<<20))
	}}
}

func (d *disk) write(name, text string) {
	if d.files[name] == nil {
		d.files[name] = &inode{name: name}
	}
	d.files[name].text = text
}

// remove makes those who have the file open read ENODEV, as in a cgroup that was
// removed.
func (d *disk) remove(name string) {
	d.files[name].readErr = syscall.ENODEV
	delete(d.files, name)
}

func (d *disk) open(file string) (handle, error) {
	name := filepath.ToSlash(file)
	d.opened[name]++
	f, found := d.files[name]
	switch {
	case !found:
		return nil, &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}
	case f.openErr != nil:
		return nil, &fs.PathError{Op: "open", Path: file, Err: f.openErr}
	}
	d.held++
	return &fakeHandle{d, f}, nil
}

type fakeHandle struct {
	d *disk
	f *inode
}

func (h *fakeHandle) ReadAt(buf []byte, offset int64) (int, error) {
	if h.f.readErr != nil {
		return 0, &fs.PathError{Op: "read", Path: filepath.FromSlash(h.f.name), Err: h.f.readErr}
	}
	n := copy(buf, h.f.text[min(int(offset), len(h.f.text)):])
	if n < len(buf) {
		return n, io.EOF
	}
	return n, nil
}

func (h *fakeHandle) Close() error {
	h.d.held--
	return nil
}
