// SPDX-License-Identifier: Apache-2.0

// Package advice reads a Collector's effective configuration for what its governor needs to know: which
// components keep data after they have answered for it, where it is stored, what its paths carry, and what
// will not work as its author meant.
// It is pure: a configuration in, words out.
package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Advice is what a configuration tells.
type Advice struct {
	// Holders names what keeps data alive after the call that brought it has returned, and what is not
	// known to give it back. Empty means that a lease covers all there is of a batch.
	Holders []string
	// Directories are where the started file storages write, sorted: persistent queues fill their disks.
	Directories []string
	// Signals says which signal an HTTP path of the receivers carries: traces, metrics, logs or profiles. A
	// path that carries several has the one that can take the most heap for its bytes.
	Signals map[string]string
	// Streams says that some receiver bounds the calls at once on a gRPC connection.
	Streams bool
	// Message is the most bytes that a message over gRPC may have, 0 where that is not known.
	Message int64
	// Warnings are complete sentences for the log.
	Warnings []string
}

const limiter = "limiter"

var (
	// batchers collect data of several calls and answer each before they pass it on.
	batchers = []string{"batch", "groupbytrace", "tail_sampling"}
	// direct connectors pass data on within the call that brought it. Any other may keep it.
	direct = []string{"count", "forward", "roundrobin", "routing", "sum"}
	// queueless exporters have no queue to configure. Any other may have one that is on by default.
	queueless = []string{"debug", "nop"}
)

// Read returns the advice for an effective configuration to the governor of an id. Only what its service reaches
// counts. Headers says that tenants are told apart by the headers of their requests.
func Read(conf *confmap.Conf, governor string, headers bool) Advice {
	var a Advice
	root := conf.ToStringMap()
	a.Streams = streams(root["receivers"])
	a.Message = message(root["receivers"], governor)
	exporters, connectors := section(root, "exporters"), section(root, "connectors")
	service := section(root, "service")
	pipelines := section(service, "pipelines")
	holders := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(pipelines)) {
		p, _ := pipelines[id].(map[string]any)
		processors := list(p, "processors")
		at := slices.IndexFunc(processors, func(id string) bool { return typeOf(id) == limiter })
		for i, id2 := range processors {
			if !slices.Contains(batchers, typeOf(id2)) {
				continue
			}
			holders["processor "+id2] = true
			if i < at {
				a.Warnings = append(a.Warnings, fmt.Sprintf("pipeline %s has %s before %s: senders are answered"+
					" before their batch is admitted, and a refusal is a loss; put the limiter first", id, id2, processors[at]))
			}
		}
		// What comes from a connector has passed the limiter of the pipeline before it.
		entered := slices.ContainsFunc(list(p, "receivers"), func(id string) bool { _, is := connectors[id]; return !is })
		if at < 0 && entered {
			holders["pipeline "+id+" without a limiter"] = true
			a.Warnings = append(a.Warnings, fmt.Sprintf("pipeline %s has no limiter:"+
				" what becomes of its batches is not followed, and without the door they are not governed; put one first", id))
		}
		for _, id := range list(p, "exporters") {
			if _, is := connectors[id]; is {
				if !slices.Contains(direct, typeOf(id)) {
					holders["connector "+id] = true
				}
			} else if queues(typeOf(id), exporters[id]) {
				holders["exporter "+id] = true
			}
		}
	}
	a.Directories = directories(section(root, "extensions"), list(service, "extensions"))
	a.Signals = paths(section(root, "receivers"), pipelines)
	a.Holders = slices.Sorted(maps.Keys(holders))
	a.Warnings = append(a.Warnings, careless(section(root, "receivers"), pipelines, governor, headers)...)
	return a
}

// careless warns of the protocols of OTLP receivers at which the governor is no door, and, where that matters, of those
// that do not hand on the headers of requests.
func careless(receivers, pipelines map[string]any, governor string, headers bool) (warnings []string) {
	reached := map[string]bool{}
	for _, p := range pipelines {
		p, _ := p.(map[string]any)
		for _, id := range list(p, "receivers") {
			reached[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(reached)) {
		if typeOf(id) != "otlp" {
			continue
		}
		r, _ := receivers[id].(map[string]any)
		protocols := section(r, "protocols")
		for _, name := range slices.Sorted(maps.Keys(protocols)) {
			protocol, on := protocols[name].(map[string]any)
			if !on {
				continue
			}
			if !named(protocol["middlewares"], governor) {
				warnings = append(warnings, fmt.Sprintf("receiver %s does not name %s among its middlewares for %s, so requests"+
					" are refused only once they are decoded; add {id: %[2]s} to protocols::%[3]s::middlewares", id, governor, name))
			}
			if include, _ := protocol["include_metadata"].(bool); headers && !include {
				warnings = append(warnings, fmt.Sprintf("receiver %s does not hand on the headers of %s requests, so all"+
					" who send them are the default tenant; set protocols::%[2]s::include_metadata to true", id, name))
			}
		}
	}
	return warnings
}

// queues reports whether an exporter may answer before it has exported. In an effective configuration a
// queue that was turned off is null; one that is absent was never configured.
func queues(kind string, config any) bool {
	c, _ := config.(map[string]any)
	queue, configured := c["sending_queue"]
	if !configured {
		return !slices.Contains(queueless, kind)
	}
	q, on := queue.(map[string]any)
	if !on {
		return queue != nil
	}
	wait, _ := q["wait_for_result"].(bool)
	return !wait
}

func section(m map[string]any, key string) map[string]any {
	s, _ := m[key].(map[string]any)
	return s
}

// list returns the strings of a list, which an effective configuration may hold typed or untyped.
func list(m map[string]any, key string) []string {
	switch l := m[key].(type) {
	case []string:
		return l
	case []any:
		var s []string
		for _, e := range l {
			s = append(s, fmt.Sprint(e))
		}
		return s
	}
	return nil
}

// typeOf is the part of a component's id before the name.
func typeOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return kind
}
