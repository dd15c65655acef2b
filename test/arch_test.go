// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/otel-governor/otel-governor/"

// room is what a package may import, beside the standard library. DESIGN draws these arrows.
type room struct {
	ours   []string // packages of this module
	others []string // packages of other modules, and those below them
	never  []string // of the standard library, and those below them
}

var (
	collectorParts = []string{
		"go.opentelemetry.io/collector/component", "go.opentelemetry.io/collector/confmap",
		"go.opentelemetry.io/otel", "go.uber.org/zap",
	}
	pdata = "go.opentelemetry.io/collector/pdata"

	// rooms has the product's packages, those that are still to come included. One that is not here fails the
	// test, so that its arrows are thought of.
	rooms = map[string]room{
		"admission": {others: []string{
			"go.opentelemetry.io/collector/consumer/consumererror", "google.golang.org/genproto/googleapis/rpc",
			"google.golang.org/grpc/codes", "google.golang.org/grpc/status", "google.golang.org/protobuf",
		}},
		"extension/governor": {
			ours: []string{
				"admission", "extension/governor/internal/metadata", "internal/advice", "internal/cgroupmem",
				"internal/door", "internal/pool", "internal/pressure", "internal/status", "internal/strict", "internal/tenant",
			},
			others: append(slices.Clone(collectorParts),
				"go.opentelemetry.io/collector/client", "go.opentelemetry.io/collector/extension",
				"github.com/shirou/gopsutil/v4/disk", "github.com/shirou/gopsutil/v4/mem",
				"google.golang.org/grpc"), // what middleware hands over is grpc's
		},
		"extension/governor/internal/metadata": {others: collectorParts},
		"processor/limiter": {
			ours: []string{"admission", "internal/footprint", "internal/lifetime", "internal/strict", "processor/limiter/internal/metadata"},
			others: append(slices.Clone(collectorParts), pdata,
				"go.opentelemetry.io/collector/consumer", "go.opentelemetry.io/collector/pipeline",
				"go.opentelemetry.io/collector/processor"),
		},
		"processor/limiter/internal/metadata": {others: collectorParts},
		"internal/advice":                     {others: []string{"go.opentelemetry.io/collector/confmap"}, never: []string{"os", "net"}},
		"internal/cgroupmem":                  {never: []string{"net", "os/exec"}},
		"internal/door": {
			ours: []string{"admission", "internal/footprint"},
			others: append(slices.Clone(collectorParts), pdata,
				"go.opentelemetry.io/collector/client", "go.opentelemetry.io/collector/extension",
				"go.opentelemetry.io/collector/pipeline", "google.golang.org/genproto/googleapis/rpc",
				"google.golang.org/grpc", "google.golang.org/protobuf"),
		},
		"internal/lifetime":  {others: []string{pdata}, never: []string{"os", "net"}},
		"internal/status":    {},
		"internal/tenant":    {others: []string{"github.com/sony/gobreaker"}, never: []string{"net"}},
		"internal/footprint": {others: []string{pdata}, never: []string{"os", "net"}},
		"internal/pool":      {never: []string{"os", "net"}},
		"internal/pressure":  {never: []string{"net"}},
		"internal/strict":    {others: []string{"github.com/docker/go-units", "go.opentelemetry.io/collector/confmap"}, never: []string{"os", "net"}},
	}
)

// TestPackagesImportOnlyWhatTheDesignAllows looks at the imports of the product, for every platform that has
// files of its own.
func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for path, imports := range importsOf(t, goos) {
			name := strings.TrimPrefix(path, module)
			if strings.HasSuffix(name, "/metadatatest") { // helpers of the tests, by mdatagen
				continue
			}
			r, known := rooms[name]
			if !known {
				t.Errorf("%s has no room in this test", name)
				continue
			}
			for _, path := range imports {
				if !r.allows(path) {
					t.Errorf("%s: %s must not import %s", goos, name, path)
				}
			}
		}
	}
}

func (r room) allows(path string) bool {
	if ours, is := strings.CutPrefix(path, module); is {
		return slices.Contains(r.ours, ours)
	}
	below := func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
	if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
		return slices.ContainsFunc(r.others, below)
	}
	return !slices.ContainsFunc(r.never, below)
}

// importsOf returns what the product's packages import, tests aside.
func importsOf(t *testing.T, goos string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./admission/...", "./extension/...", "./internal/...", "./processor/...")
	cmd.Dir = ".."
	cmd.Env = append(cmd.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return imports
		} else if err != nil {
			t.Fatal(err)
		}
		imports[p.ImportPath] = p.Imports
	}
}

// TestContractNeedsNothingElse makes sure that a third party which imports the contract imports just that.
func TestContractNeedsNothingElse(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./admission")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(path, module) && path != module+"admission" {
			t.Errorf("admission depends on %s", path)
		}
	}
}
