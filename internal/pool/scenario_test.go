// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"testing"

	"github.com/otel-governor/otel-governor/internal/pool"
	"github.com/otel-governor/otel-governor/test/sim"
)

// door is a pool alone behind a simulation's door.
type door struct {
	pool     *pool.Pool
	accounts map[string]*pool.Account
}

func limitsOf(c *sim.Client) pool.Limits {
	l := c.Limits
	return pool.Limits{Weight: l.Weight, Fraction: l.Fraction, Slots: l.Slots, Queued: l.Queued, Stranger: l.Stranger}
}

func openDoor(_ *testing.T, p sim.Pool, clients []sim.Client) sim.Door {
	d := door{
		pool: pool.New(pool.Settings{
			Capacity: p.Capacity, Slots: p.Slots, MaxQueued: p.MaxQueued, MaxQueuedBytes: p.MaxQueuedBytes,
			QueueTimeout: p.QueueTimeout,
		}),
		accounts: map[string]*pool.Account{},
	}
	for i := range clients {
		d.accounts[clients[i].Name] = pool.NewAccount(limitsOf(&clients[i]))
	}
	return d
}

func (d door) Admit(ctx context.Context, c *sim.Client) (release func(), refusal string) {
	l := new(pool.Lease)
	res := d.pool.Acquire(ctx, l, pool.Request{Account: d.accounts[c.Name], Bytes: c.Batch})
	if res.Outcome != pool.Granted {
		return nil, outcomes[res.Outcome]
	}
	return func() { l.Release() }, ""
}

func (d door) Change(p sim.Pool, clients []sim.Client) {
	d.pool.Resize(pool.Size{Capacity: p.Capacity, MaxQueued: p.MaxQueuedBytes})
	for i := range clients {
		d.pool.SetLimits(d.accounts[clients[i].Name], limitsOf(&clients[i]))
	}
}

// TestSharesAgainstMaxMin compares what clients hold on average with what they would if shares were divided
// by somebody who knows all.
func TestSharesAgainstMaxMin(t *testing.T) {
	sim.PlayAll(t, openDoor, testing.Short(), sim.Shares()...)
}

func TestNeighbors(t *testing.T) {
	sim.PlayAll(t, openDoor, testing.Short(), sim.Neighbors()...)
}
