// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want []string
	}{
		"those of all file storages, once each and sorted": {
			yaml: `
extensions: {file_storage/b: {directory: /b}, file_storage: {directory: /a}, file_storage/c: {directory: /b/}}
service: {extensions: [file_storage/b, governor, file_storage, file_storage/c]}`,
			want: []string{"/a", "/b"},
		},
		"compaction that is not used": {
			yaml: `
extensions: {file_storage: {directory: /a, compaction: {directory: /tmp}}, file_storage/b: {directory: /b, compaction: {on_start: false, on_rebound: false, directory: /tmp}}}
service: {extensions: [file_storage, file_storage/b]}`,
			want: []string{"/a", "/b"},
		},
		"compaction on start": {
			yaml: `
extensions: {file_storage: {directory: /a, compaction: {on_start: true, directory: /start}}}
service: {extensions: [file_storage]}`,
			want: []string{"/a", "/start"},
		},
		"compaction on rebound": {
			yaml: `
extensions: {file_storage: {directory: /a, compaction: {on_rebound: true, directory: ./rebound}}}
service: {extensions: [file_storage]}`,
			want: []string{"/a", "rebound"},
		},
		"compaction where the data is": {
			yaml: `
extensions: {file_storage: {directory: /a, compaction: {on_start: true, on_rebound: true, directory: /a}}}
service: {extensions: [file_storage]}`,
			want: []string{"/a"},
		},
		"a storage that is not started": {yaml: `
extensions: {file_storage: {directory: /a}}
service: {extensions: [governor]}`},
		"other extensions have other directories": {yaml: `
extensions: {file_storages: {directory: /a}, db_storage: {directory: /b}}
service: {extensions: [file_storages, db_storage]}`},
		"a storage without a directory": {
			yaml: `
extensions: {file_storage: {compaction: {on_start: true}}, file_storage/b: , file_storage/c: {directory: /c}}
service: {extensions: [file_storage, file_storage/b, file_storage/c]}`,
			want: []string{"/c"},
		},
		"shapes that no collector has": {yaml: `
extensions: {file_storage: [a], file_storage/b: {directory: [b], compaction: {on_start: 1, directory: /c}}}
service: {extensions: [file_storage, file_storage/b, 5]}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, read(t, tt.yaml, false).Directories)
		})
	}
}
