// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/admission"
)

type nameKey struct{}

// TestInventedNamesShareTheTurnsOfOneTenant has large requests wait for the only place of a door that knows acme and
// initech, and says in which order they get it.
func TestInventedNamesShareTheTurnsOfOneTenant(t *testing.T) {
	var many []string
	for i := range 6 {
		many = append(many, fmt.Sprint("invented-", i))
	}
	for name, tt := range map[string]struct {
		come, want []string
	}{
		"a flood under many names beside one that is known": {
			come: append(append([]string{}, many...), "acme", "acme", "acme"),
			want: []string{many[0], "acme", many[1], "acme", many[2], "acme", many[3], many[4], many[5]},
		},
		"a flood under many names beside two that are known": {
			come: append(append([]string{}, many[:4]...), "acme", "initech", "acme", "initech"),
			want: []string{many[0], "acme", "initech", many[1], "acme", "initech", many[2], many[3]},
		},
		"a flood of one name beside one that is honest, neither known": {
			come: []string{"flood", "flood", "flood", "flood", "flood", "honest", "honest"},
			want: []string{"flood", "honest", "flood", "honest", "flood", "flood", "flood"},
		},
		"who names nobody beside a flood of one name": {
			come: []string{"flood", "flood", "flood", "", ""},
			want: []string{"flood", "", "flood", "", "flood"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(func(c *Settings) {
					c.Known = func(ctx context.Context) string {
						if of := ctx.Value(nameKey{}).(string); of == "acme" || of == "initech" {
							return of
						}
						return ""
					}
				})
				s.scribe.identify = func(ctx context.Context) string { return ctx.Value(nameKey{}).(string) }
				s.heavy.free = 1
				gate, order := make(chan struct{}), make(chan string, len(tt.come))
				for _, of := range tt.come {
					go func() {
						_ = s.work(context.WithValue(t.Context(), nameKey{}, of), s.heavy, mib, func() {
							<-gate
							order <- of
						}, func(context.Context, admission.Reason, int64, int64) *admission.Error { return nil })
					}()
					synctest.Wait()
				}
				close(gate)
				var got []string
				for range tt.come {
					got = append(got, <-order)
				}
				require.Equal(t, tt.want, got)
				synctest.Wait()
				require.Empty(t, s.heavy.queues)
			})
		})
	}
}

// Who begins anew owes nothing and has saved nothing up, whether or not anybody can invent it.
func TestInventedNamesBeginWithWhatWasServedLast(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, done := onePlace(), make(chan string, 10)
			first, second := make(chan struct{}), make(chan struct{})
			ask(p, party{"a", true}, mib, done, func() { <-first })
			ask(p, party{"a", true}, mib, done, func() { <-second })
			close(first)
			synctest.Wait()
			for range 3 {
				ask(p, party{"b", known}, mib, done, func() {})
			}
			ask(p, party{"a", true}, mib, done, func() {})
			close(second)
			for _, want := range []string{"a", "a", "b", "b", "a", "b"} {
				require.Equal(t, want, <-done)
			}
		})
	}
}
