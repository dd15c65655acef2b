// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestParseReport(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		want  report
		error string
	}{
		"nothing":        {in: ""},
		"no end":         {in: "value a eA==\n", want: report{values: map[string]string{"a": "x"}}},
		"end":            {in: "exit 0\n", want: report{ended: true}},
		"code":           {in: "exit 137\n", want: report{ended: true, code: 137}},
		"empty value":    {in: "value a \nexit 0\n", want: report{values: map[string]string{"a": ""}, ended: true}},
		"lines":          {in: "value a eAp5Cgo=\n", want: report{values: map[string]string{"a": "x\ny"}}},
		"cut end":        {in: "exit 1", error: "cut short"},
		"cut value":      {in: "value a eA", error: "cut short"},
		"after the end":  {in: "exit 0\nvalue a eA==\n", want: report{ended: true}, error: "after the end"},
		"two ends":       {in: "exit 0\nexit 0\n", want: report{ended: true}, error: "after the end"},
		"no code":        {in: "exit \n", error: "exit code"},
		"negative code":  {in: "exit -1\n", error: "exit code"},
		"large code":     {in: "exit 256\n", error: "exit code"},
		"not base64":     {in: "value a !\n", error: "value of a"},
		"no key":         {in: "value  eA==\n", error: "not a result"},
		"key with space": {in: "value a b eA==\n", error: "not a result"},
		"twice": {
			in:   "value a eA==\nvalue a eQ==\n",
			want: report{values: map[string]string{"a": "x"}}, error: "twice",
		},
		"noise": {in: "[    1.0] usb\n", error: "not a result"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseReport([]byte(c.in))
			if !maps.Equal(got.values, c.want.values) || got.code != c.want.code || got.ended != c.want.ended {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			wantError(t, err, c.error)
		})
	}
}

func TestVerdict(t *testing.T) {
	stopped := errors.New("stopped")
	for name, c := range map[string]struct {
		results, console string
		runErr           error
		want             string
	}{
		"pass":                    {results: "exit 0\n"},
		"talk of a panic":         {results: "exit 0\n", console: "Kernel panic"},
		"code":                    {results: "exit 3\n", want: "code 3"},
		"silence":                 {want: "went down"},
		"panic":                   {console: "Kernel panic - not syncing", want: "panicked"},
		"end on the console only": {console: "exit 0\n", want: "went down"},
		"noise before the end":    {results: "noise\nexit 0\n", want: "not a result"},
		"stopped after the end":   {results: "exit 0\n", runErr: stopped, want: "stopped"},
		"stopped before the end":  {runErr: context.DeadlineExceeded, want: "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := verdict([]byte(c.results), c.console, c.runErr)
			wantError(t, err, c.want)
			if result.Console != c.console {
				t.Errorf("console = %q, want %q", result.Console, c.console)
			}
		})
	}
}

func TestPlainLines(t *testing.T) {
	var got []string
	p := &plainLines{w: writerFunc(func(b []byte) (int, error) {
		got = append(got, string(b))
		return len(b), nil
	})}
	for _, chunk := range []string{"a", "b\r", "\n", "c\r\nd\r\ne", "f"} {
		if n, err := p.Write([]byte(chunk)); n != len(chunk) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", chunk, n, err)
		}
	}
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "ab\n|c\nd\n|ef"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// wantError checks for an error with the text want, or for none if it is empty.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error = %v, want one with %q", err, want)
	}
}
