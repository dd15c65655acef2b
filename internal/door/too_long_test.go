// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/otel-governor/otel-governor/admission"
)

// packings are the ways in which a message may come that is as long as nothing that could be admitted.
var packings = map[string][]grpc.CallOption{"plain": nil, "in gzip": {grpc.UseCompressor("gzip")}}

func TestWhatCouldNeverBeAdmittedIsRefusedByItsLength(t *testing.T) {
	for name, packing := range packings {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			s.purse.maxBatch = 10_000
			s.scribe.admit = func(_ context.Context, r admission.Request) error {
				assert.Equal(t, r.WireSize, r.Memory)
				assert.Zero(t, r.Items, "nobody looked")
				return &admission.Error{Reason: admission.BatchMemory, Observed: r.Memory, Limit: 10_000}
			}
			_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(100), packing...)
			info, _ := refused(t, err, codes.InvalidArgument)
			require.Equal(t, "batch_memory", info.Reason)
			require.Zero(t, s.codec.decoded.Load())
			s.closed(t)
		})
	}
}

// What may be admitted follows the machine and may become more before a lease is asked for.
func TestWhatWasTooLongIsNotLetInUnweighedOnceMoreMayBe(t *testing.T) {
	for name, packing := range packings {
		for _, observe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, observed %t", name, observe), func(t *testing.T) {
				s := open(t, func(c *Settings) { c.Observe = observe })
				s.purse.maxBatch = 10_000
				_, err := ptraceotlp.NewGRPCClient(s.dial(t, "")).Export(t.Context(), batch(100), packing...)
				if observe {
					require.NoError(t, err)
				} else {
					info, _ := refused(t, err, codes.InvalidArgument)
					require.Equal(t, "batch_memory", info.Reason)
					require.Equal(t, "10000", info.Metadata["limit"])
					require.Equal(t, strconv.FormatInt(s.lease(t).request.WireSize, 10), info.Metadata["observed"])
					require.Zero(t, s.codec.decoded.Load())
				}
				s.closed(t)
				require.Len(t, s.scribe.asked, 1)
				require.Zero(t, s.scribe.held.Load())
			})
		}
	}
}
