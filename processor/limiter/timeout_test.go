// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"errors"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

// inBubble runs f in virtual time. No garbage is collected meanwhile: a real governor is told of it from outside.
func inBubble(t *testing.T, f func(*testing.T)) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, f)
}

func TestProcessingTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := startGovernor(t, limited("processing_timeout", "2s"))
		var l tested
		l = start(t, h, "metrics", func(ctx context.Context, items int) error {
			<-ctx.Done()
			bytes, _ := held(t, h, "metrics")
			require.Equal(t, l.weight(items), bytes, "the lease lasts until the next one returns")
			if items == 1 {
				return nil // it made it all the same
			}
			return ctx.Err()
		})
		began := time.Now()
		err := l.send(t.Context(), 5)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.ErrorIs(t, err, admission.ErrOverloaded)
		require.ErrorContains(t, err, "processing_timeout: the batch was not processed in 2000 ms and processing_timeout is 2000")
		require.NoError(t, l.send(t.Context(), 1))

		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, context.DeadlineExceeded, l.send(gone, 5), "the caller's own deadline is not the limiter's")
		bytes, batches := held(t, h, "metrics")
		require.Zero(t, bytes+batches)
	})
}

// A server that was told of the deadline may give up on it, and its answer be here, before the limiter's own timer has
// fired. That is the timeout all the same.
func TestAnswerAtTheProcessingTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := startGovernor(t, limited("processing_timeout", "2s"))
		l := start(t, h, "traces", func(ctx context.Context, _ int) error {
			deadline, _ := ctx.Deadline()
			<-time.After(time.Until(deadline))
			return errors.New("the server gave up")
		})
		for range 100 {
			require.ErrorContains(t, l.send(t.Context(), 1), "processing_timeout: ")
		}
	})
}
