// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadRuntimeFollowsTheRuntime(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r := ReadRuntime()
	require.EqualValues(t, 3<<30, r.MemoryLimit)
	require.Negative(t, r.GCPercent)
	require.Positive(t, r.Overhead)
	require.EqualValues(t, runtime.GOMAXPROCS(0), r.Procs)

	debug.SetMemoryLimit(math.MaxInt64)
	debug.SetGCPercent(150)
	r = ReadRuntime()
	require.EqualValues(t, math.MaxInt64, r.MemoryLimit)
	require.EqualValues(t, 150, r.GCPercent)
}

func TestRuntimeReaderSeesACollection(t *testing.T) {
	onlyForcedCollections(t)
	var reader RuntimeReader
	before := reader.Read()
	kept := make([]byte, 8*mib)
	runtime.GC()
	after := reader.Read()
	require.Equal(t, before.GCs+1, after.GCs)
	require.Equal(t, before.ForcedGCs+1, after.ForcedGCs)
	require.Greater(t, after.GCTime, before.GCTime)
	require.GreaterOrEqual(t, after.Live, int64(len(kept)))
	runtime.KeepAlive(kept)

	runtime.GC()
	require.Less(t, reader.Read().Live, after.Live-7*mib)
	require.Greater(t, reader.Read().Free, int64(7*mib))
}

func TestRuntimeReaderAllocatesNothing(t *testing.T) {
	var reader RuntimeReader
	reader.Read()
	require.Zero(t, testing.AllocsPerRun(100, func() { reader.Read() }))
}
