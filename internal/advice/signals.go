// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// signals are what OTLP over HTTP carries, the heaviest first, and the paths of a receiver that sets none.
// They are ordered by the most heap that a byte on the wire can take. That is a record of two bytes, its tag
// and a length of 0, by footprint.Wire: 108 bytes of heap per byte for spans, 100 for points of exponential
// histograms, 84 for profiles, 68 for log records.
var signals = []struct{ name, path string }{
	{"traces", "/v1/traces"},
	{"metrics", "/v1/metrics"},
	{"profiles", "/v1development/profiles"}, // a receiver has no key to set it
	{"logs", "/v1/logs"},
}

// paths returns the signals by the HTTP paths on which OTLP receivers take them. A receiver listens on a path
// only if a pipeline takes that signal from it. Where receivers take different signals on one path, it is the
// heaviest's.
func paths(receivers, pipelines map[string]any) map[string]string {
	found := map[string]string{}
	for _, s := range signals {
		for id := range pipelines {
			if typeOf(id) != s.name {
				continue
			}
			for _, id := range list(section(pipelines, id), "receivers") {
				http, on := section(section(receivers, id), "protocols")["http"].(map[string]any)
				if typeOf(id) != "otlp" || !on {
					continue
				}
				path, set := http[s.name+"_url_path"].(string)
				if !set {
					path = s.path
				}
				path = "/" + strings.TrimPrefix(path, "/") // as the receiver has it
				if found[path] == "" {
					found[path] = s.name
				}
			}
		}
	}
	return found
}

// message returns the most bytes that a message over gRPC may have: what is set beside a governor among the middlewares,
// the largest where that differs, or 0 where nobody knows.
func message(config any, governor string) (most int64) {
	m, _ := config.(map[string]any)
	for key, value := range m {
		most = max(most, message(value, governor))
		server, _ := value.(map[string]any)
		size, set := server["max_recv_msg_size_mib"]
		if !set && key != "grpc" || !named(server["middlewares"], governor) {
			continue
		}
		mib, err := strconv.ParseInt(fmt.Sprint(size), 10, 32)
		if err != nil || mib <= 0 {
			mib = 4 // as in grpc
		}
		most = max(most, mib<<20)
	}
	return most
}

// named reports whether an id is in a list of middlewares.
func named(middlewares any, id string) bool {
	l, _ := middlewares.([]any)
	return slices.ContainsFunc(l, func(e any) bool {
		m, _ := e.(map[string]any)
		return fmt.Sprint(m["id"]) == id
	})
}

// streams reports whether max_concurrent_streams is set anywhere in a configuration; its default is 0.
func streams(config any) bool {
	m, _ := config.(map[string]any)
	for key, value := range m {
		if key == "max_concurrent_streams" && value != nil && fmt.Sprint(value) != "0" || streams(value) {
			return true
		}
	}
	return false
}
