// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otel-governor/otel-governor/admission"
)

// do has a request do its work in a place.
func do(ctx context.Context, p *places, of party, bytes int64, work func()) (waited time.Duration, ok bool) {
	if waited, ok = p.take(ctx, of, bytes); ok {
		defer p.give(of)
		work()
	}
	return waited, ok
}

// ask has a request of a tenant do its work in a place, in a goroutine of its own, and then writes its name
// down. It returns once the request is at work or waits.
func ask(p *places, of party, bytes int64, done chan<- string, work func()) {
	go do(context.Background(), p, of, bytes, func() {
		work()
		done <- of.name
	})
	synctest.Wait()
}

func onePlace() *places {
	p := newPlaces(heavyFrom, time.Minute)
	p.free = 1
	return p
}

func TestPlacesGoToTheTenantThatWasServedLeast(t *testing.T) {
	for name, tt := range map[string]struct {
		first string // whose request is at work
		then  []string
		sizes map[string]int64
		want  []string
	}{
		"in the order of arrival within a tenant": {
			first: "a", then: []string{"b", "c", "d"}, want: []string{"a", "b", "c", "d"},
		},
		"by turns": {
			first: "a", then: []string{"a", "a", "a", "b", "b"}, want: []string{"a", "b", "a", "b", "a", "a"},
		},
		"by bytes": {
			first: "a", then: []string{"a", "a", "b", "b", "b", "b"}, sizes: map[string]int64{"a": 3 * mib},
			want: []string{"a", "b", "b", "b", "a", "b", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, done := onePlace(), make(chan string, 10)
				gate := make(chan struct{})
				for _, tenant := range append([]string{tt.first}, tt.then...) {
					ask(p, party{name: tenant}, max(mib, tt.sizes[tenant]), done, func() { <-gate })
				}
				close(gate)
				for _, want := range tt.want {
					require.Equal(t, want, <-done)
				}
				synctest.Wait()
				require.Equal(t, 1, p.free)
				require.Empty(t, p.queues)
			})
		})
	}
}

func TestATenantWithNothingAtWorkGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, done := onePlace(), make(chan string, 10)
		p.free = 2
		slow, gate := make(chan struct{}), make(chan struct{})
		ask(p, party{name: "a"}, mib, done, func() { <-slow })
		ask(p, party{name: "b"}, 50*mib, done, func() { <-gate })
		ask(p, party{name: "a"}, mib, done, func() {})
		ask(p, party{name: "b"}, mib, done, func() {})
		close(gate)
		require.Equal(t, []string{"b", "b", "a"}, []string{<-done, <-done, <-done}, "although b was served more")
		close(slow)
		<-done
		synctest.Wait()
		require.Equal(t, 2, p.free)
	})
}

func TestSmallRequestsTakeNoPlace(t *testing.T) {
	d := New(Settings{})
	d.heavy.free = 0
	worked := false
	require.NoError(t, d.work(t.Context(), d.heavy, heavyFrom, func() { worked = true }, nil))
	require.True(t, worked)
}

func TestWaitingForAPlaceEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		until  time.Duration // the caller's deadline
		waited time.Duration
		reason admission.Reason
	}{
		"after the patience of all":  {until: time.Hour, waited: time.Minute, reason: admission.QueueTimeout},
		"with the caller's deadline": {until: time.Second, waited: time.Second, reason: admission.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, done := onePlace(), make(chan string, 1)
				gate := make(chan struct{})
				ask(p, party{name: "a"}, mib, done, func() { <-gate })
				ctx, cancel := context.WithTimeout(t.Context(), tt.until)
				defer cancel()
				waited, ok := do(ctx, p, party{name: "b"}, mib, func() { t.Error("there was no place") })
				require.False(t, ok)
				require.Equal(t, tt.waited, waited)
				reason, observed, limit := p.refusal(ctx, waited)
				require.Equal(t, tt.reason, reason)
				if reason == admission.QueueTimeout {
					require.EqualValues(t, 60_000, observed)
					require.EqualValues(t, 60_000, limit)
				}
				close(gate)
				<-done
				synctest.Wait()
				require.Equal(t, 1, p.free)
				require.Empty(t, p.queues)
			})
		})
	}
}

func TestAPlaceOutlivesAPanic(t *testing.T) {
	p := onePlace()
	require.Panics(t, func() { do(t.Context(), p, party{name: "a"}, mib, func() { panic("broken") }) })
	_, ok := do(t.Context(), p, party{name: "a"}, mib, func() {})
	require.True(t, ok)
}

// However requests come, wait and go away, no more are at work than there are places, none waits beside a free
// one, and in the end all places are free.
func TestPlacesAreNeitherLostNorInvented(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(1, 4).Draw(rt, "places")
		synctest.Test(t, func(*testing.T) {
			p := onePlace()
			p.free = count
			var working, waiting atomic.Int64
			var finish []chan struct{}
			var cancels []context.CancelFunc
			rt.Repeat(map[string]func(*rapid.T){
				"come": func(rt *rapid.T) {
					ctx, cancel := context.WithCancel(context.Background())
					cancels = append(cancels, cancel)
					end := make(chan struct{})
					finish = append(finish, end)
					of := rapid.SampledFrom([]party{{"a", true}, {"a", false}, {"b", false}, {"c", true}}).Draw(rt, "party")
					go func() {
						waiting.Add(1)
						if _, ok := do(ctx, p, of, mib, func() {
							waiting.Add(-1)
							working.Add(1)
							<-end
							working.Add(-1)
						}); !ok {
							waiting.Add(-1)
						}
					}()
				},
				"finish": func(rt *rapid.T) {
					if len(finish) > 0 {
						i := rapid.IntRange(0, len(finish)-1).Draw(rt, "which")
						close(finish[i])
						finish = append(finish[:i], finish[i+1:]...)
						cancels = append(cancels[:i:i], cancels[i+1:]...)
					}
				},
				"go away": func(rt *rapid.T) {
					if len(cancels) > 0 {
						cancels[rapid.IntRange(0, len(cancels)-1).Draw(rt, "which")]()
					}
				},
				"lose patience": func(*rapid.T) { <-time.After(time.Minute) },
				"": func(rt *rapid.T) {
					synctest.Wait()
					at, line := int(working.Load()), waiting.Load()
					if at > count || at+p.free != count || line > 0 && p.free > 0 {
						rt.Fatalf("%d of %d places free, %d at work, %d waiting", p.free, count, at, line)
					}
				},
			})
			for _, end := range finish {
				close(end)
			}
			synctest.Wait()
			if p.free != count || len(p.queues) > 0 || p.invented.queues+p.invented.working > 0 {
				rt.Fatalf("%d of %d places are free in the end", p.free, count)
			}
		})
	})
}
