// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// maxFile is the size of the largest overrides file: some tens of thousands of tenants.
const maxFile = 8 << 20

// settled is how old a file must be for an unchanged modification time to mean unchanged content. File
// systems keep times in steps, of 2 s in the worst case, and a second write within one is invisible.
const settled = 2 * time.Second

// Parse makes overrides of a file's content, or returns all that is wrong with it.
type Parse func(content []byte) (map[string]Override, error)

// OverridesFile follows a file of overrides: whether it is written in place, replaced by another, or a
// symbolic link on the way to it changes, as in a mounted ConfigMap. There is nothing to close. All
// methods are safe for concurrent use.
type OverridesFile struct {
	path  string
	parse Parse
	valid atomic.Bool

	mu struct {
		sync.Mutex
		overrides map[string]Override
		content   [sha256.Size]byte // of the last good one
		seen      os.FileInfo       // of what was last read; nil: read again
		failed    string            // the error that has been returned
	}
}

// OpenOverrides reads the file for the first time.
func OpenOverrides(path string, parse Parse) (*OverridesFile, error) {
	f := &OverridesFile{path: path, parse: parse}
	if _, err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Overrides returns what the last good file says. The caller must not change it.
func (f *OverridesFile) Overrides() map[string]Override {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.overrides
}

// Valid reports whether the file as it was last found is the one in force.
func (f *OverridesFile) Valid() bool { return f.valid.Load() }

// Reload looks at the file again. Changed says that Overrides are to be applied and that everything is
// well: they are new, or the file is again what it was before it was broken. An error says that the file
// cannot be read or does not parse, and that the last good one stays in force; the same error is returned
// once, until the file is good again or wrong in another way.
func (f *OverridesFile) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, content, err := f.read()
	if err == nil && info == nil {
		return false, nil
	}
	var overrides map[string]Override
	if err == nil {
		if sha256.Sum256(content) == f.mu.content && f.mu.overrides != nil {
			overrides = f.mu.overrides
			changed = !f.valid.Load()
		} else if overrides, err = f.parse(content); err == nil {
			changed = true
		}
	}
	f.mu.seen = info
	if err != nil {
		err = fmt.Errorf("the overrides file %q: %w", f.path, err)
		first := err.Error() != f.mu.failed
		f.mu.failed = err.Error()
		f.valid.Store(false)
		if !first {
			err = nil
		}
		return false, err
	}
	if changed {
		if overrides == nil {
			overrides = map[string]Override{}
		}
		f.mu.overrides, f.mu.content = overrides, sha256.Sum256(content)
	}
	f.mu.failed = ""
	f.valid.Store(true)
	return changed, nil
}

// The errors of a file that cannot be read.
var (
	errIrregular = errors.New("it is not a regular file")
	errEmpty     = errors.New("it is empty; write {} for no overrides")
	errTooLarge  = fmt.Errorf("it is larger than %d bytes", maxFile)
)

// read returns the file's content, or nothing if it has not changed since it was last seen. With info
// nil, the next call reads in any case.
func (f *OverridesFile) read() (os.FileInfo, []byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, nil, errIrregular
	}
	if f.mu.seen != nil && same(f.mu.seen, info) {
		return nil, nil, nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // it may have been replaced meanwhile
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(content) > maxFile:
		return nil, nil, errTooLarge
	case len(bytes.TrimSpace(content)) == 0:
		// A writer that truncates first is seen here one day, and no override at all is too much to
		// conclude from that.
		return nil, nil, errEmpty
	}
	return info, content, nil
}

// same reports whether it is the same file with the same content.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
