// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// report is what the guest wrote to its second serial port: lines of
//
//	value KEY BASE64
//	exit CODE
//
// where exit comes once and last. The values are encoded so that one of many
// lines stays one line and the terminal layer has nothing to rewrite.
type report struct {
	values map[string]string
	code   int
	ended  bool
}

// parseReport reads a report. It refuses what guest/init and guest/result
// would not write, a last line cut short and a key reported twice, and then
// returns what came before.
func parseReport(b []byte) (report, error) {
	r := report{values: map[string]string{}}
	for line := range strings.Lines(string(b)) {
		text, whole := strings.CutSuffix(line, "\n")
		if !whole {
			return r, fmt.Errorf("cut short: %q", line)
		}
		if r.ended {
			return r, fmt.Errorf("after the end: %q", text)
		}
		switch fields := strings.Split(text, " "); {
		case len(fields) == 3 && fields[0] == "value" && fields[1] != "":
			value, err := base64.StdEncoding.DecodeString(fields[2])
			if err != nil {
				return r, fmt.Errorf("value of %s: %w", fields[1], err)
			}
			if _, twice := r.values[fields[1]]; twice {
				return r, fmt.Errorf("%s was reported twice", fields[1])
			}
			r.values[fields[1]] = strings.TrimRight(string(value), "\n")
		case len(fields) == 2 && fields[0] == "exit":
			code, err := strconv.ParseUint(fields[1], 10, 8)
			if err != nil {
				return r, fmt.Errorf("exit code: %w", err)
			}
			r.code, r.ended = int(code), true
		default:
			return r, fmt.Errorf("not a result: %q", text)
		}
	}
	return r, nil
}
