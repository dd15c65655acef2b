// SPDX-License-Identifier: Apache-2.0

package door

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

func TestASlowBodyIsLetBeWhileNobodyWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		s := h.send("a", -1)
		for range 60 {
			s.body(1 << 10)
			<-time.After(time.Second)
		}
		_ = s.Conn.Close()
		code, text := s.answer()
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, fmt.Sprint(60<<10), text)
	})
}

func TestASlowBodyHoldsNoMoreThanTwiceOfWhatCame(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		s := h.send("a", 10<<20)
		for sent := 1000; sent < 100_000; sent += 1000 {
			s.body(1000)
			synctest.Wait()
			require.LessOrEqual(t, h.wire.total.Load(), max(int64(bodyStep), int64(2*sent)))
		}
		require.Zero(t, h.clerk.atWork(), "and no place")
		_ = s.Conn.Close()
		s.answer()
	})
}

const (
	full  = 4<<20 - 1     // fills the room of all: a request always gets through, whatever its size
	large = largeFrom + 1 // shares the room of such a one
)

func TestASmallBodyNeedNotWaitForALargeOne(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		holder := h.send("a", -1)
		holder.body(full)
		start := time.Now()
		for _, from := range []string{"a", "b"} {
			neighbour := h.send(from, -1)
			neighbour.body(largeFrom - 1)
			_ = neighbour.Conn.Close()
			code, _ := neighbour.answer()
			require.Equal(t, http.StatusOK, code)
		}
		require.Zero(t, time.Since(start))
		_ = holder.Conn.Close()
		code, _ := holder.answer()
		require.Equal(t, http.StatusOK, code)
	})
}

func TestSmallBodiesThatAreSlowGiveWayToOneThatIsNot(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var slow []*sender
		for i := range 16 { // all that there is, in small pieces
			s := h.send(fmt.Sprint(i), -1)
			s.body(largeFrom - 1)
			slow = append(slow, s)
		}
		<-time.After(time.Minute)
		neighbour := h.send("neighbour", -1)
		neighbour.body(1000)
		_ = neighbour.Conn.Close()
		code, _ := neighbour.answer()
		require.Equal(t, http.StatusOK, code)
		for _, s := range slow {
			_, text := s.answer()
			require.Contains(t, text, "body_timeout")
		}
	})
}

func TestAStalledBodyGivesWayToWhoFindsNoRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		length int64
		from   string
	}{
		"of another address":            {-1, "b"},
		"of another address, announced": {large, "b"},
		"of the same address":           {-1, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				stalled := h.send("a", -1)
				stalled.body(full)
				<-time.After(ahead + time.Millisecond)

				start := time.Now()
				neighbour := h.send(tt.from, tt.length)
				neighbour.body(large)
				_ = neighbour.Conn.Close()
				code, _ := neighbour.answer()
				require.Equal(t, http.StatusOK, code)
				require.LessOrEqual(t, time.Since(start), 2*lookEvery)

				code, text := stalled.answer()
				require.Equal(t, http.StatusServiceUnavailable, code)
				require.Contains(t, text, "body_timeout")
				require.Contains(t, text, "took 501 ms and may take 500")
				require.Equal(t, longAgo, stalled.deadline, "nobody waits for what it might still send")
			})
		})
	}
}

func TestABodyThatHasJustStalledIsGivenTheTimeOfALostPacket(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		stalled := h.send("a", -1)
		stalled.body(full)
		start := time.Now()
		neighbour := h.send("b", -1)
		neighbour.body(large)
		_ = neighbour.Conn.Close()
		code, _ := neighbour.answer()
		require.Equal(t, http.StatusOK, code)
		require.InDelta(t, ahead, time.Since(start), float64(2*lookEvery))
		stalled.answer()
	})
}

func TestABodyWaitsForRoomThatMessagesOfOthersTake(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.wire.add(h.wire.limit())
		s := h.send("a", -1)
		go func() {
			s.body(1000)
			_ = s.Conn.Close()
		}()
		<-time.After(h.QueueTimeout / 2)
		require.Equal(t, h.wire.limit(), h.wire.total.Load(), "nothing has been taken")
		h.wire.add(-h.wire.limit())
		code, _ := s.answer()
		require.Equal(t, http.StatusOK, code)
	})
}

func TestABodyAtThePaceIsNotCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		steady := h.send("a", -1)
		steady.body(full)
		go steady.dribble(slowest)
		<-time.After(time.Minute)
		neighbour := h.send("b", -1)
		go neighbour.body(large)
		code, text := neighbour.answer()
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Contains(t, text, "memory_contended")
		_ = neighbour.Conn.Close()
		_ = steady.Conn.Close()
		code, _ = steady.answer()
		require.Equal(t, http.StatusOK, code)
	})
}

func TestABodyBelowThePaceIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		slow := h.send("a", -1)
		slow.body(full)
		go slow.dribble(slowest - 1<<10)
		<-time.After(time.Minute)
		neighbour := h.send("b", -1)
		neighbour.body(large)
		_ = neighbour.Conn.Close()
		code, _ := neighbour.answer()
		require.Equal(t, http.StatusOK, code)
		code, _ = slow.answer()
		require.Equal(t, http.StatusServiceUnavailable, code)
		_ = slow.Conn.Close()
	})
}

func TestAnAddressAboveItsShareDoesNotMakeOthersWait(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		neighbour := h.send("b", -1)
		neighbour.body(1)
		first := h.send("a", -1)
		first.body(1<<20 - 1)
		start := time.Now()
		second := h.send("a", -1)
		go second.body(large)
		code, text := second.answer()
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Contains(t, text, "memory_contended")
		require.Zero(t, time.Since(start))
		for _, s := range []*sender{first, neighbour} {
			_ = s.Conn.Close()
			code, _ = s.answer()
			require.Equal(t, http.StatusOK, code)
		}
		_ = second.Conn.Close()
	})
}

func TestBodiesThatContendGetThroughOneAfterTheOther(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var senders []*sender
		for i := range 20 { // each wants three quarters of what all may have
			s := h.send(fmt.Sprint(i), -1)
			go func() {
				s.body(3 << 20)
				_ = s.Conn.Close()
			}()
			senders = append(senders, s)
		}
		for _, s := range senders {
			code, text := s.answer()
			require.Equal(t, http.StatusOK, code, text)
		}
	})
}

func TestAClientThatLeavesWhileItWaitsIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		holder := h.send("a", -1)
		holder.body(full)
		waiting := h.send("b", -1)
		go waiting.body(large)
		<-time.After(lookEvery / 2)
		start := time.Now()
		waiting.end()
		_, text := waiting.answer()
		require.Contains(t, text, "canceled")
		require.Zero(t, time.Since(start))
		_ = waiting.Conn.Close()
		_ = holder.Conn.Close()
		holder.answer()
	})
}

func TestALargeBodyWaitsForAHeavyPlaceNoLongerThanABatchInLine(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.heavy.free = 0
		start := time.Now()
		s := h.sendAs(jsonType, "a", heavyFrom+1)
		s.body(heavyFrom + 1)
		_ = s.Conn.Close()
		code, text := s.answer()
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Contains(t, text, string(admission.QueueTimeout))
		require.Equal(t, h.QueueTimeout, time.Since(start))

		gone := h.sendAs(jsonType, "a", heavyFrom+1)
		gone.body(heavyFrom + 1)
		_ = gone.Conn.Close()
		gone.end()
		_, text = gone.answer()
		require.Contains(t, text, string(admission.Canceled))
	})
}
