// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// healthy is what a readiness probe asks, and says no from the moment that the governor does.
const healthy = `
extensions::healthcheckv2: {use_v2: true, http: {endpoint: '%s', status: {enabled: true}},
  component_health: {include_recoverable_errors: true, recovery_duration: 0s}}
service::extensions: [governor, healthcheckv2]`

// lowered has critical begin where ballast can safely take a process.
const lowered = `
extensions::governor: {memory: {gomemlimit_fraction: 0.4}, guard: {elevated_fraction: 0.5, critical_fraction: 0.6}}`

// readiness is what a probe of a collector's health sees.
type readiness struct {
	code   int
	status string    // of the governor
	since  time.Time // when it came to be that
}

// ready asks at the health endpoint.
func ready(t *testing.T, endpoint string) readiness {
	t.Helper()
	resp, err := http.Get("http://" + endpoint + "/status?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Components map[string]struct {
			Components map[string]struct {
				Status string    `json:"status"`
				Time   time.Time `json:"status_time"`
			} `json:"components"`
		} `json:"components"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	g := said.Components["extensions"].Components["extension:governor"]
	return readiness{resp.StatusCode, g.Status, g.Time}
}

// TestReadinessFailsOnceCriticalHasLasted has something else in the process's cgroup take its memory. Nobody gets in
// but, where that was asked for, who comes from this machine; health and telemetry answer all the while, and
// readiness fails after ten seconds, and comes back with the memory.
func TestReadinessFailsOnceCriticalHasLasted(t *testing.T) {
	t.Parallel()
	for name, exempt := range map[string]bool{"everybody": false, "loopback exempt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 512 * mib
			g, endpoint := newCgroup(t, limit), freeAddress(t)
			c := start(t, setup{config: "gateway.yaml", cgroup: g, yaml: []string{
				fmt.Sprintf(healthy, endpoint), lowered, fmt.Sprintf("extensions::governor::guard::exempt_loopback: %v", exempt),
			}})
			eventually(t, "it is ready", func() bool { // who tells of it hears a little later
				r := ready(t, endpoint)
				return r.code == http.StatusOK && r.status == "StatusOK"
			})
			drop := g.ballast(limit / 10 * 7)
			eventually(t, "the level is critical", func() bool { return c.level() == 2 })
			critical := c.turns()[0]
			if to, cause := critical.text("to"), critical.text("cause"); to != "critical" || cause != "unreclaimable" {
				t.Errorf("the level changed to %s for %s", to, cause)
			}
			if r := ready(t, endpoint); r.code != http.StatusOK || r.status != "StatusOK" {
				t.Errorf("a burst shows as %+v", r)
			}
			for _, p := range protocols {
				for _, sig := range signals[:3] {
					if a := c.send(p, sig, one("meanwhile", 0)); exempt {
						wantAccepted(t, a)
					} else {
						wantLater(t, a, "memory_pressure")
						if a.http != 0 && !a.closes { // the next one may find another collector behind the same address
							t.Errorf("the connection stays open: %v", a)
						}
					}
				}
			}
			var failed readiness
			eventually(t, "readiness fails", func() bool {
				failed = ready(t, endpoint)
				return failed.code != http.StatusOK
			})
			if failed.code != http.StatusInternalServerError || failed.status != "StatusRecoverableError" {
				t.Errorf("after ten seconds: %+v", failed)
			}
			if after := failed.since.Sub(critical.time(t)); after < 10*time.Second {
				t.Errorf("readiness failed after %v, want 10s at least", after)
			}
			if again := ready(t, endpoint); !again.since.Equal(failed.since) {
				t.Errorf("the status was told again: %+v, %+v", failed, again)
			}
			drop()
			eventually(t, "readiness comes back", func() bool { return ready(t, endpoint).code == http.StatusOK })
			if a := c.send(grpcProtocol, traces, one("afterwards", 0)); a.status.Code() != codes.OK {
				t.Errorf("ready, but refuses: %v", a)
			}
			if turns := c.turns(); len(turns) != 2 || turns[1].text("to") != "ok" {
				t.Errorf("changes of level: %v", turns)
			}
		})
	}
}
