// SPDX-License-Identifier: Apache-2.0

package door

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// 500 senders of 1 KiB a second and two that stall at nine tenths of what they may hold, beside a neighbour
// that sends a batch ten times a second. All of them come back as soon as they have been refused.
func TestSlowBodiesHoldWhatTheySentAndNoNeighbourUp(t *testing.T) {
	for name, address := range map[string]func(slow int) string{
		"from an address each":         func(slow int) string { return fmt.Sprint(slow) },
		"from one address":             func(int) string { return "slow" },
		"from the neighbour's address": func(int) string { return "neighbour" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				h.books.size = 64 << 20
				done := make(chan struct{})
				again := func(send func()) {
					for {
						select {
						case <-done:
							return
						default:
							send()
						}
					}
				}
				var senders sync.WaitGroup
				for i := range 500 {
					senders.Go(func() {
						<-time.After(time.Duration(i) * time.Millisecond)
						again(func() {
							s := h.send(address(i), -1)
							for range 600 {
								if _, err := s.Conn.Write(make([]byte, 1<<10)); err != nil {
									break
								}
								<-time.After(time.Second)
								select {
								case <-done:
									_ = s.Conn.Close()
								default:
								}
							}
							_ = s.Conn.Close()
							s.answer()
						})
					})
				}
				for i := range 2 {
					senders.Go(func() {
						again(func() {
							s := h.send(address(500+i), -1)
							s.body(int(h.wire.limit() * 9 / 10))
							select {
							case <-done:
							case <-s.answered:
							}
							_ = s.Conn.Close()
							s.answer()
						})
					})
				}

				var most int64
				var longest time.Duration
				for range 50 { // five seconds
					<-time.After(100 * time.Millisecond)
					start := time.Now()
					s := h.send("neighbour", -1)
					s.body(100_000)
					_ = s.Conn.Close()
					code, text := s.answer()
					require.Equal(t, http.StatusOK, code, text)
					longest = max(longest, time.Since(start))
					most = max(most, h.wire.total.Load())
				}
				close(done)
				senders.Wait()
				t.Logf("on their way in: %d KiB at most, the neighbour's longest: %v", most>>10, longest)
				require.LessOrEqual(t, most, 2*h.wire.limit(), "the limit and one message")
			})
		})
	}
}
