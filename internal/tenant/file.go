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
	"syscall"
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
		sum       [sha256.Size]byte // of the content they come from
		seen      os.FileInfo       // of the file that was last read, good or not; nil: read it again
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
	content, err := f.readLocked()
	if errors.Is(err, errUnchanged) || errors.Is(err, errWritten) && f.mu.overrides != nil {
		return false, nil
	}
	if err == nil {
		changed, err = f.useLocked(content)
	}
	f.valid.Store(err == nil)
	if err == nil {
		f.mu.failed = ""
		return changed, nil
	}
	err = fmt.Errorf("the overrides file %q: %w", f.path, err)
	if err.Error() == f.mu.failed {
		return false, nil
	}
	f.mu.failed = err.Error()
	return false, err
}

// useLocked takes what the file says for its overrides, if that is well.
func (f *OverridesFile) useLocked(content []byte) (changed bool, err error) {
	sum := sha256.Sum256(content)
	if f.mu.overrides != nil && sum == f.mu.sum {
		return !f.valid.Load(), nil
	}
	overrides, err := f.parse(content)
	if err != nil {
		return false, err
	}
	if overrides == nil {
		overrides = map[string]Override{}
	}
	f.mu.overrides, f.mu.sum = overrides, sum
	return true, nil
}

var (
	errUnchanged = errors.New("it has not changed")
	errWritten   = errors.New("it is being written")
	errIrregular = errors.New("it is not a regular file")
	errEmpty     = errors.New("it is empty; write {} for no overrides")
	errTooLarge  = fmt.Errorf("it is larger than %d bytes", maxFile)
)

// readLocked returns the file's content.
func (f *OverridesFile) readLocked() ([]byte, error) {
	seen := f.mu.seen
	f.mu.seen = nil
	now := time.Now()
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, errIrregular
	}
	if seen != nil && same(seen, info) {
		f.mu.seen = seen
		return nil, errUnchanged
	}
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // it may be another one by now
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if after, err := file.Stat(); err != nil || !same(info, after) {
		return nil, errors.Join(errWritten, err)
	}
	if len(content) > maxFile {
		return nil, errTooLarge
	}
	if len(bytes.TrimSpace(content)) == 0 {
		// A writer that truncates first is seen here one day, and no override at all is too much to
		// conclude from that.
		return nil, errEmpty
	}
	if now.Sub(info.ModTime()) >= settled {
		f.mu.seen = info
	}
	return content, nil
}

// same reports whether it is the same file with the same content.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
