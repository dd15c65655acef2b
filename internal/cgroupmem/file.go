// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"errors"
	"fmt"
	"io"
)

// file is one that is kept open and read again in place. The zero value is one
// that is never there.
type file struct {
	name string
	open func(name string) (handle, error)
	h    handle // nil until it is opened, and after a failure
	skip int    // reads before an absent file is looked for again
}

// handle is an open file; tests have their own.
type handle interface {
	io.ReaderAt
	io.Closer
}

// kept returns a file to keep open, below the root. It does not touch it.
func (r *Reader) kept(name string) file { return file{name: r.file(name), open: r.open} }

// lookAgain is how many reads of an absent file it takes for it to be looked for
// again: an attempt allocates, and on many machines a file is never there, such
// as those of PSI where the kernel starts without it.
const lookAgain = 64

// read reads f into buf and parses it. It returns absent and no error if f is not
// there, absent and an error if f could not be read or parsed.
func read[T any](f *file, buf []byte, parse func([]byte) (T, error), absent T) (T, error) {
	text, found, err := f.read(buf)
	if err != nil || !found {
		return absent, err
	}
	v, err := parse(text)
	if err != nil {
		return absent, fmt.Errorf("%s: %w", f.name, err)
	}
	return v, nil
}

// read reads the whole file into buf. An error names the file.
func (f *file) read(buf []byte) (text []byte, found bool, err error) {
	if f.name == "" {
		return nil, false, nil
	}
	if f.skip > 0 {
		f.skip--
		return nil, false, nil
	}
	wasOpen := f.h != nil
	text, err = f.readOpen(buf)
	if err != nil && wasOpen {
		// Files of a cgroup that was removed fail for ever (ENODEV); what is
		// there now is another file.
		text, err = f.readOpen(buf)
	}
	if isAbsent(err) || errors.Is(err, errors.ErrUnsupported) { // unsupported: PSI that is switched off
		f.skip = lookAgain - 1
		return nil, false, nil
	}
	return text, err == nil, err
}

// readOpen opens the file unless it is open, and closes it if it cannot be read.
func (f *file) readOpen(buf []byte) ([]byte, error) {
	if f.h == nil {
		h, err := f.open(f.name)
		if err != nil {
			return nil, err
		}
		f.h = h
	}
	n, err := f.h.ReadAt(buf, 0)
	if err == io.EOF { // compared, not unwrapped: that is how an io.ReaderAt says it
		return buf[:n], nil
	}
	if err == nil {
		err = fmt.Errorf("%s: want less than %d bytes", f.name, len(buf))
	}
	_ = f.close()
	return nil, err
}

func (f *file) close() error {
	if f.h == nil {
		return nil
	}
	h := f.h
	f.h = nil
	return h.Close()
}
