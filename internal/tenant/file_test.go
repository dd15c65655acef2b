// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tenant_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

// overridesFile is a file whose lines are names and weights.
type overridesFile struct {
	*tenant.OverridesFile
	t      *testing.T
	path   string
	parsed int
}

func newOverridesFile(t *testing.T, content string) *overridesFile {
	o := &overridesFile{t: t, path: filepath.Join(t.TempDir(), "overrides.yaml")}
	o.write(o.path, content)
	o.open()
	return o
}

func (o *overridesFile) open() {
	o.t.Helper()
	f, err := tenant.OpenOverrides(o.path, o.parse)
	require.NoError(o.t, err)
	o.OverridesFile = f
}

func (o *overridesFile) parse(content []byte) (map[string]tenant.Override, error) {
	o.parsed++
	overrides := map[string]tenant.Override{}
	for line := range strings.Lines(string(content)) {
		name, weight, _ := strings.Cut(strings.TrimSpace(line), " ")
		w, err := strconv.ParseFloat(weight, 64)
		if err != nil {
			return nil, errors.New("no weight: " + name)
		}
		overrides[name] = tenant.Override{Weight: &w}
	}
	return overrides, nil
}

func (o *overridesFile) write(path, content string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(path, []byte(content), 0o600))
}

// age makes the file look as if it had been written a while ago, at the same time whenever it is called.
func (o *overridesFile) age(path string) {
	o.t.Helper()
	then := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(o.t, os.Chtimes(path, then, then))
}

// expect reloads and looks at a's weight.
func (o *overridesFile) expect(changed bool, fault string, weight float64) {
	o.t.Helper()
	got, err := o.Reload()
	assert.Equal(o.t, changed, got)
	if fault == "" {
		assert.NoError(o.t, err)
	} else {
		assert.ErrorContains(o.t, err, fault)
		assert.ErrorContains(o.t, err, strconv.Quote(o.path))
	}
	assert.Equal(o.t, weight, *o.Overrides()["a"].Weight)
}

func TestOverridesFileIsReadAgainWhenItChanges(t *testing.T) {
	o := newOverridesFile(t, "a 1")
	o.expect(false, "", 1)
	o.write(o.path, "a 2") // in place, of the same length, as soon as it can be
	o.expect(true, "", 2)
	o.expect(false, "", 2)
	o.write(o.path, "a 2")
	o.expect(false, "", 2)
	assert.Equal(t, 2, o.parsed)
}

// TestOverridesFileIsWrittenTwiceAtOneTime: file systems keep times in steps, so the time of a young file
// says nothing.
func TestOverridesFileIsWrittenTwiceAtOneTime(t *testing.T) {
	o := newOverridesFile(t, "a 1")
	young := time.Now().Add(time.Hour) // however slow this test is
	require.NoError(t, os.Chtimes(o.path, young, young))
	o.expect(false, "", 1)
	o.write(o.path, "a 2")
	require.NoError(t, os.Chtimes(o.path, young, young))
	o.expect(true, "", 2)
}

func TestOverridesFileIsReplacedByRename(t *testing.T) {
	o := newOverridesFile(t, "a 1")
	o.age(o.path)
	o.expect(false, "", 1)
	o.expect(false, "", 1)
	next := o.path + ".next"
	o.write(next, "a 2")
	o.age(next) // as old and as long: it differs by being another file
	require.NoError(t, os.Rename(next, o.path))
	o.expect(true, "", 2)
}

// TestOverridesFileIsReadOnlyWhenTouched: a file that has rested is not read at every look.
func TestOverridesFileIsReadOnlyWhenTouched(t *testing.T) {
	o := newOverridesFile(t, "a 1")
	o.age(o.path)
	o.expect(false, "", 1)
	file, err := os.OpenFile(o.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("a 9")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	o.age(o.path) // not even its time tells
	o.expect(false, "", 1)
	require.NoError(t, os.Chtimes(o.path, time.Now(), time.Now()))
	o.expect(true, "", 9)
}

// TestOverridesFileFollowsAConfigMap swaps ..data as a kubelet does.
func TestOverridesFileFollowsAConfigMap(t *testing.T) {
	dir := t.TempDir()
	o := &overridesFile{t: t, path: filepath.Join(dir, "overrides.yaml")}
	publish := func(version, content string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		o.write(filepath.Join(dir, version, "overrides.yaml"), content)
		o.age(filepath.Join(dir, version, "overrides.yaml"))
		require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..1", "a 1")
	require.NoError(t, os.Symlink("..data/overrides.yaml", o.path))
	o.open()
	o.expect(false, "", 1)
	publish("..2", "a 2")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "..1")))
	o.expect(true, "", 2)
	o.expect(false, "", 2)
}

func TestBrokenOverridesFileKeepsTheLastGoodOne(t *testing.T) {
	o := newOverridesFile(t, "a 1")
	assert.True(t, o.Valid())
	o.write(o.path, "a one")
	o.expect(false, "no weight: a", 1)
	assert.False(t, o.Valid())
	o.expect(false, "", 1) // once
	o.age(o.path)
	o.expect(false, "", 1)
	assert.False(t, o.Valid())
	o.write(o.path, "b two")
	o.expect(false, "no weight: b", 1)
	require.NoError(t, os.Remove(o.path))
	o.expect(false, "no such file", 1)
	o.expect(false, "", 1)
	o.write(o.path, " \n") // a writer that truncates first
	o.expect(false, "it is empty; write {}", 1)
	o.write(o.path, strings.Repeat("a 1\n", 2<<20+1))
	o.expect(false, "larger than 8388608 bytes", 1)
	o.write(o.path, "a 1")
	o.expect(true, "", 1) // what is in force is what is there again
	assert.True(t, o.Valid())
	o.write(o.path, "a one")
	o.expect(false, "no weight: a", 1) // anew
	o.write(o.path, "a 3")
	o.expect(true, "", 3)
}

func TestOverridesFileAtStart(t *testing.T) {
	o := &overridesFile{t: t}
	dir := t.TempDir()
	pipe, broken := filepath.Join(dir, "pipe"), filepath.Join(dir, "broken")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	o.write(broken, "a one")
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "not a regular file",
		pipe:                       "not a regular file",
		broken:                     "no weight: a",
	} {
		_, err := tenant.OpenOverrides(path, o.parse)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, strconv.Quote(path))
	}
}
