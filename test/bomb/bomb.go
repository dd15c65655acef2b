// SPDX-License-Identifier: Apache-2.0

// Package bomb puts a neighbor and an offender in front of a collector that has little memory, and says what
// became of each. It is for stories and for the demo, which show what a peer does in the same place.
//
// The collector has one processor and all clients another, so that neither is measured by the other's work, and
// the offender's clients yield to the neighbor's. What clients send is made once and sent as it is, so that an
// offender is as cheap as an attacker's would be. A collector that is killed is started again at once, which no
// orchestrator would do so fast.
//
// Clients are processes of the same program: whoever holds a [Contest] calls [BecomeClient] first, in main or TestMain.
package bomb

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Contest is who stands before which collector, and for how long.
type Contest struct {
	Name               string
	Binary             string   // of the collector
	YAML               []string // merged over what every collector here has
	Limit              int64    // bytes of memory
	Loose              bool     // everybody may use all processors
	Neighbor, Offender Load     // one without clients is none
	Lasts              time.Duration
	// Beside is called before the clients begin, and what it returns when they are done and the collector still runs.
	Beside func(*Collector) (end func() error, err error)
}

// Hold holds the contest.
func (o Contest) Hold() (row Row, err error) {
	row = Row{Name: o.Name, Kills: -1}
	c, err := startCollector(o)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.cgroup.remove()) }()
	err = errors.Join(o.face(c, &row), c.stop())
	row.Ends, row.Peak, row.NoCgroup = c.ended(), c.resident, c.ungroup
	if c.ungroup == nil {
		row.Kills, row.Peak = c.cgroup.kills(), c.cgroup.peak()
	}
	if err != nil {
		err = fmt.Errorf("%w\nthe end of the collector's log:\n%s", err, &c.log)
	}
	return row, err
}

// face has the clients send.
func (o Contest) face(c *Collector, row *Row) error {
	var clients []*client
	for _, of := range []struct {
		load Load
		into *Tally
	}{{o.Neighbor, &row.Neighbor}, {o.Offender, &row.Offender}} {
		if of.load.Clients == 0 {
			continue
		}
		cl, err := o.startClient(of.load, c, of.into)
		if err != nil {
			return err
		}
		defer cl.end()
		clients = append(clients, cl)
	}
	end := func() error { return nil }
	if o.Beside != nil {
		var err error
		if end, err = o.Beside(c); err != nil {
			return err
		}
	}
	for _, cl := range clients {
		cl.begin()
	}
	var all error
	for _, cl := range clients {
		all = errors.Join(all, cl.told())
	}
	return errors.Join(all, end())
}

// startClient starts one that sends a load to a collector.
func (o Contest) startClient(l Load, c *Collector, into *Tally) (*client, error) {
	l.Lasts, l.Address = o.Lasts, c.HTTP
	if l.Protocol == GRPC {
		l.Address = c.GRPC
	}
	return startClient(l, into, o.Loose)
}

// Row is what became of the clients in front of a collector, and of the collector.
type Row struct {
	Name               string
	Neighbor, Offender Tally
	Kills              int64 // by the kernel; -1 where there is no cgroup
	Ends               int64 // of the process, whatever the reason
	Peak               int64 // bytes of memory
	NoCgroup           error // why there was no memory limit, if there was none
}

// Heading stands above rows.
const Heading = "                          neighbor accepted      p50      p99 ms   kills  peak MiB   offender's answers"

// String is the row for a person.
func (r Row) String() string {
	ms := func(q float64) float64 { return float64(r.Neighbor.Quantile(q)) / float64(time.Millisecond) }
	kills := fmt.Sprint(r.Kills)
	if r.NoCgroup != nil {
		kills = "?"
	}
	return fmt.Sprintf("%-26s %5d of %5d  %8.1f %8.1f %10s %9d   %s", r.Name,
		r.Neighbor.Answers[Accepted], r.Neighbor.Sent, ms(0.5), ms(0.99), kills, r.Peak>>20, r.Offender.answers())
}

// answers tells the answers, the most frequent first.
func (t Tally) answers() string {
	names := slices.SortedFunc(maps.Keys(t.Answers), func(a, b string) int { return t.Answers[b] - t.Answers[a] })
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", t.Answers[name], name)
	}
	return strings.Join(names, ", ")
}
