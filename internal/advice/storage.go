// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"maps"
	"path/filepath"
	"slices"
)

// directories returns where the file storages among the extensions with ids keep their data, and where they
// compact it if they do. An effective configuration holds their defaults, so one without a directory has an
// empty one, with which a file storage does not start: there is nothing to watch.
func directories(extensions map[string]any, ids []string) []string {
	found := map[string]bool{}
	add := func(m map[string]any) {
		if d, _ := m["directory"].(string); d != "" {
			found[filepath.Clean(d)] = true
		}
	}
	for _, id := range ids {
		if typeOf(id) != "file_storage" {
			continue
		}
		storage := section(extensions, id)
		add(storage)
		if c := section(storage, "compaction"); c["on_start"] == true || c["on_rebound"] == true {
			add(c)
		}
	}
	return slices.Sorted(maps.Keys(found))
}
