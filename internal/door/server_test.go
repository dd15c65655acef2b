// SPDX-License-Identifier: Apache-2.0

package door

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/metadata"
)

// What a call says of itself is in memory before anybody is asked.
func TestHeadersAreBounded(t *testing.T) {
	s := open(t, nil)
	traces := ptraceotlp.NewGRPCClient(s.dial(t, ""))
	for size, taken := range map[int]bool{maxHeaders / 2: true, maxHeaders: false} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-large", strings.Repeat("a", size))
		_, err := traces.Export(ctx, batch(1))
		require.Equal(t, taken, err == nil, "%d bytes: %v", size, err)
	}
	s.closed(t)
	require.Len(t, s.scribe.asked, 1)
}

func TestTheWindowOfAStreamIsAShareOfTheWire(t *testing.T) {
	for limit, want := range map[int64]int64{
		1:        64 << 10,
		4 * mib:  64 << 10,
		8 * mib:  128 << 10,
		32 * mib: 256 << 10,
		1 << 50:  256 << 10,
	} {
		require.Equal(t, want, streamWindow(limit), "of %d bytes", limit)
	}
}
