// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/otel-governor/otel-governor/internal/pressure"
)

// unreadyAfter is how long critical pressure lasts before the component says so. A burst that a whole fleet
// feels must not take all of it out of its load balancer at once.
const unreadyAfter = 10 * time.Second

// health is what the component says of itself, which it does when it changes.
type health struct {
	host   component.Host
	failed bool
}

// follow reports a change of health.
func (h *health) follow(now time.Time, s pressure.State) {
	failed := s.Level == pressure.Critical && now.Sub(s.Since) >= unreadyAfter
	if failed == h.failed {
		return
	}
	h.failed = failed
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if failed {
		event = componentstatus.NewRecoverableErrorEvent(fmt.Errorf(
			"new work is refused for want of memory since %s: %s is %d and the threshold %d",
			s.Since.Format(time.RFC3339), s.Cause, s.Observed, s.Threshold))
	}
	componentstatus.ReportStatus(h.host, event)
}
