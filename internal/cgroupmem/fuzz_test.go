// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"fmt"
	"math"
	"math/big"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory line decides wherever it stands, and names come back untouched.
func FuzzParseCgroup(f *testing.F) {
	f.Add("5:cpu:/\n", "/a:b", "0::/\n")
	f.Add("", "/../x", "9:name=systemd:/\n")
	f.Add("4:memory", "", "\n")
	memory := regexp.MustCompile(`(?m)^[^:\n]*:([^:\n]*,)?memory(,[^:\n]*)?:`)
	f.Fuzz(func(t *testing.T, before, name, after string) {
		source, got, err := parseCgroup(before)
		switch {
		case err != nil:
			require.Empty(t, source+Source(got))
			return
		case memory.MatchString(before):
			require.Equal(t, SourceCgroupV1, source)
		default:
			require.NotEqual(t, SourceCgroupV1, source)
		}
		require.Equal(t, source == "", got == "")
		require.Contains(t, before, got)

		if source == SourceCgroupV1 || strings.Contains(name, "\n") || before != "" && !strings.HasSuffix(before, "\n") {
			return
		}
		_, got, err = parseCgroup(before + "7:hugetlb,memory:/" + name + "\n" + after)
		require.NoError(t, err)
		require.Equal(t, "/"+name, got)
	})
}

// What the kernel's escaping does to names is undone, among any other lines.
func FuzzParseMountinfo(f *testing.F) {
	f.Add("22 28 0:21 / /proc rw - proc proc rw\n", "/../..", "/sys/fs/cgroup")
	f.Add("33 23 0:28 pod /cg rw - cgroup2 cgroup2 rw\n", "/a b - c", "/\t\\040\n")
	escape := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
	f.Fuzz(func(t *testing.T, before, root, point string) {
		mounts, err := parseMountinfo(before)
		for _, m := range mounts {
			require.Contains(t, []Source{SourceCgroupV1, SourceCgroupV2}, m.source)
			require.True(t, strings.HasPrefix(m.root, "/") && strings.HasPrefix(m.point, "/"))
		}
		if before != "" && !strings.HasSuffix(before, "\n") {
			return
		}
		line := "36 30 0:31 /" + escape.Replace(root) + " /" + escape.Replace(point) + " rw shared:9 - cgroup cgroup rw,memory\n"
		all, errAll := parseMountinfo(before + line)
		require.Equal(t, err, errAll)
		require.Equal(t, append(mounts, mount{SourceCgroupV1, "/" + root, "/" + point}), all)
	})
}

// A directory is at or below the one mount there is, the next one is above it,
// and some answer is always given.
func FuzzLocate(f *testing.F) {
	f.Add("/a/b", "/a")
	f.Add("/../x", "/..")
	f.Add("/a/../../../etc/x", "/")
	f.Add("//a/./b/", "/a")
	f.Fuzz(func(t *testing.T, name, root string) {
		dirs := locate([]mount{{SourceCgroupV2, "/" + root, "/sys/cg"}}, SourceCgroupV2, "/"+name)
		require.NotEmpty(t, dirs)
		for i, dir := range dirs {
			require.Equal(t, path.Clean(dir), dir)
			require.True(t, dir == "/sys/cg" || strings.HasPrefix(dir, "/sys/cg/"), dir)
			if i > 0 {
				require.True(t, strings.HasPrefix(dirs[i-1], dir), "%q", dirs)
			}
		}
		require.Equal(t, "/sys/cg", dirs[len(dirs)-1])
	})
}

// limitOracle is parseLimit by other means: big numbers and a regular expression.
func limitOracle(text string) (n int64, valid bool) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return unlimited, true
	}
	if !regexp.MustCompile(`^[0-9]+$`).MatchString(text) {
		return 0, false
	}
	b, _ := new(big.Int).SetString(text, 10)
	switch {
	case !b.IsUint64():
		return 0, false
	case b.Cmp(big.NewInt(0x7FFFFFFFFFFF0000)) >= 0:
		return unlimited, true
	}
	return b.Int64(), true
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"max\n", "0\n", "007", "1610612736\n", "9223372036854771712\n", "9223372036854710271", "9223372036854710272", "18446744073709551615", "18446744073709551616", "-1", "", "+1", "1_0", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, valid := limitOracle(text)
		got, err := parseLimit(text)
		require.Equal(t, valid, err == nil)
		require.Equal(t, want, got)
	})
}

// The first line with the key decides, whatever is around it.
func FuzzParseMemoryStat(f *testing.F) {
	f.Add("cache 1\n", "1073741824", "total_cache 5\n")
	f.Add("hierarchical_memory_limit_x 1\nhierarchical_memsw_limit 3\n", "x", "")
	f.Add("", "9223372036854771712", "hierarchical_memory_limit 1\n")
	f.Fuzz(func(t *testing.T, before, value, after string) {
		n, err := parseMemoryStat(before)
		if !strings.Contains("\n"+before, "\nhierarchical_memory_limit ") {
			require.Error(t, err)
			if strings.Contains(value, "\n") || before != "" && !strings.HasSuffix(before, "\n") {
				return
			}
			want, valid := limitOracle(value)
			n, err = parseMemoryStat(before + "hierarchical_memory_limit " + value + "\n" + after)
			require.Equal(t, valid, err == nil)
			require.Equal(t, want, n)
		}
		require.GreaterOrEqual(t, n, int64(0))
	})
}

func FuzzParseMeminfo(f *testing.F) {
	f.Add("MemTotal:       24683620 kB\nMemFree: 1 kB\n", uint64(16777216))
	f.Add("MemTotal: 1 MB\n", uint64(math.MaxInt64/1024))
	f.Add("MemFree: 1 kB\n", uint64(math.MaxInt64/1024+1))
	f.Fuzz(func(t *testing.T, text string, kilobytes uint64) {
		n, err := parseMeminfo(text)
		require.GreaterOrEqual(t, n, int64(0))
		require.Zero(t, n%1024)
		if err == nil && n > 0 {
			require.Contains(t, text, strconv.FormatInt(n/1024, 10)+" kB")
		}

		n, err = parseMeminfo(fmt.Sprintf("MemTotal:%15d kB\n%s", kilobytes, text))
		want := new(big.Int).Mul(new(big.Int).SetUint64(kilobytes), big.NewInt(1024))
		require.Equal(t, want.IsInt64(), err == nil)
		if err == nil {
			require.Equal(t, want.Int64(), n)
		}
	})
}

// The answer is the minimum of all that is stated, and the directory is the
// highest that states it.
func FuzzLimit(f *testing.F) {
	f.Add(uint64(1610612736), uint64(math.MaxUint64), uint64(2<<30), uint64(math.MaxUint64), uint32(16<<20))
	f.Add(uint64(0), uint64(0), uint64(0), uint64(0), uint32(0))
	f.Fuzz(func(t *testing.T, leafMax, leafHigh, podMax, podHigh uint64, kilobytes uint32) {
		got, err := v2.with(tree{
			"/cg/pod/ctr/memory.max":  strconv.FormatUint(leafMax, 10),
			"/cg/pod/ctr/memory.high": strconv.FormatUint(leafHigh, 10),
			"/cg/pod/memory.max":      strconv.FormatUint(podMax, 10),
			"/cg/pod/memory.high":     strconv.FormatUint(podHigh, 10),
			"/proc/meminfo":           fmt.Sprintf("MemTotal: %d kB\n", kilobytes),
		}).reader().Limit()

		leaf, pod, total := min(leafMax, leafHigh), min(podMax, podHigh), int64(kilobytes)*1024
		limited := min(leaf, pod) < noLimit
		if !limited && total == 0 {
			require.ErrorIs(t, err, ErrUnknown)
			return
		}
		require.NoError(t, err)
		want := Limit{Bytes: total, Source: SourceMeminfo, Total: total, Limited: limited}
		if least := min(leaf, pod); limited && (total == 0 || least <= uint64(total)) {
			want.Bytes, want.Source, want.Dir = int64(least), SourceCgroupV2, "/cg/pod/ctr"
			if pod == least {
				want.Dir = "/cg/pod"
			}
		}
		require.Equal(t, want, got)
	})
}
