// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCgroup(t *testing.T) {
	for _, tt := range []struct {
		text   string
		source Source
		name   string
	}{
		{"", "", ""},
		{"0::/\n", SourceCgroupV2, "/"},
		{"0::/a/b", SourceCgroupV2, "/a/b"},
		{"0::/../../c\n", SourceCgroupV2, "/../../c"},
		{"0::/a:b c\\040\n", SourceCgroupV2, "/a:b c\\040"}, // not escaped, unlike mountinfo
		{"4:memory:/a\n0::/b\n", SourceCgroupV1, "/a"},
		{"0::/b\n4:memory:/a\n", SourceCgroupV1, "/a"},
		{"4:cpu,memory:/a\n", SourceCgroupV1, "/a"},
		{"4:memory,hugetlb:/a\n", SourceCgroupV1, "/a"},
		{"4:cpu:/a\n3:name=memory:/b\n2:memoryx:/c\n", "", ""},
		{"4:cpu:not a name\n", "", ""}, // another controller's business
		{"4::/\n", "", ""},
	} {
		source, name, err := parseCgroup(tt.text)
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.source, source, tt.text)
		require.Equal(t, tt.name, name, tt.text)
	}
}

func TestParseMountinfo(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []mount
	}{
		{"33 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", []mount{{SourceCgroupV2, "/", "/sys/fs/cgroup"}}},
		{"33 23 0:28 / /cg rw shared:1 master:2 propagate_from:3 unbindable - cgroup2 none rw", []mount{{SourceCgroupV2, "/", "/cg"}}},
		{"33 23 0:28 /../.. /cg rw - cgroup2 cgroup2 rw", []mount{{SourceCgroupV2, "/../..", "/cg"}}},
		{"33 23 0:28 / /cg rw - cgroup2  rw", []mount{{SourceCgroupV2, "/", "/cg"}}}, // device is the empty string
		{`33 23 0:28 /a\040-\040b\134 /c\011d\012e rw - cgroup2 cgroup2 rw`, []mount{{SourceCgroupV2, `/a - b\`, "/c\td\ne"}}},
		{"36 30 0:31 /a /cg rw - cgroup cgroup rw,cpu,memory", []mount{{SourceCgroupV1, "/a", "/cg"}}},
		{"36 30 0:31 /a /cg rw - cgroup  rw,memory", []mount{{SourceCgroupV1, "/a", "/cg"}}},
		{"36 30 0:31 / /cg rw - cgroup memory rw,cpu", nil},
		{"36 30 0:31 / /cg rw - cgroup cgroup rw,name=memory", nil},
		{"36 30 0:31 / /cg rw,memory - tmpfs memory rw,memory", nil},
	} {
		mounts, err := parseMountinfo(tt.line + "\n")
		require.NoError(t, err, tt.line)
		require.Equal(t, tt.want, mounts, tt.line)
	}

	mounts, err := parseMountinfo("odd\n1 1 0:1 / /b rw - cgroup2 x rw\nodder\n")
	require.EqualError(t, err, `want a mount, found "odd"`)
	require.Equal(t, []mount{{SourceCgroupV2, "/", "/b"}}, mounts)
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`a\040b`: "a b", `\134040`: `\040`, `\303\251`: "é", `a\04`: `a\04`, `a\`: `a\`,
		`\777`: `\777`, `\089`: `\089`, `\+12`: `\+12`, `\\040`: `\ `,
	} {
		require.Equal(t, want, unescape(in), in)
	}
}

func TestLocate(t *testing.T) {
	v2 := func(root, point string) mount { return mount{SourceCgroupV2, root, point} }
	for _, tt := range []struct {
		name   string
		cgroup string
		mounts []mount
		want   string // directories, nearest first
	}{
		{"host", "/a/b", []mount{v2("/", "/cg")}, "/cg/a/b /cg/a /cg"},
		{"root cgroup", "/", []mount{v2("/", "/cg")}, "/cg"},
		{"no mount", "/a", nil, ""},
		{"only the other version", "/a", []mount{{SourceCgroupV1, "/", "/cg"}}, ""},
		{"container sees its own", "/docker/abc", []mount{v2("/docker/abc", "/cg")}, "/cg"},
		{"and below", "/docker/abc/init", []mount{v2("/docker/abc", "/cg")}, "/cg/init /cg"},
		{"own and the host's tree", "/pods/p/c", []mount{v2("/", "/host"), v2("/pods/p/c", "/cg")}, "/cg /host/pods/p /host/pods /host"},
		{"longest root, whatever the order", "/a/b", []mount{v2("/a/b", "/x"), v2("/a", "/y"), v2("/", "/z")}, "/x /y /z"},
		{"copies do not count", "/a", []mount{v2("/", "/cg"), v2("/", "/chroot/cg")}, "/cg/a /cg"},
		{"alike at the start only", "/docker/abcdef", []mount{v2("/docker/abc", "/cg"), v2("/docker/abcdef", "/own")}, "/own"},
		{"alike, and nothing else", "/docker/abcdef", []mount{v2("/docker/abc", "/cg")}, "/cg"},
		{"not visible: the mount's own", "/docker/abc", []mount{v2("/docker/xyz", "/cg/"), v2("/else", "/other")}, "/cg"},
		{"parent of what is visible", "/a", []mount{v2("/a/b", "/cg")}, "/cg"},
		{"beside the namespace", "/../x", []mount{v2("/", "/cg")}, "/cg"},
		{"above the namespace", "/../..", []mount{v2("/", "/cg")}, "/cg"},
		{"beside it, and that is visible", "/../x/y", []mount{v2("/", "/cg"), v2("/..", "/up")}, "/up/x/y /up/x /up"},
		{"in it, seen from above only", "/a", []mount{v2("/../..", "/host")}, "/host"},
		{"dots in names", "/..a/b..", []mount{v2("/", "/cg")}, "/cg/..a/b.. /cg/..a /cg"},
		{"never out of the mount", "/a/../../../etc", []mount{v2("/", "/cg")}, "/cg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, strings.Fields(tt.want), append([]string{}, locate(tt.mounts, SourceCgroupV2, tt.cgroup)...))
		})
	}
}
