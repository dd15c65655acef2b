// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// Turn is what became of one turn of a [Contest] that is held in turn with others.
type Turn struct {
	Tally
	Lasted time.Duration // until the last answer
}

// InTurn holds contests in turn, round after round, each time in another order. Each has its own collector and its
// neighbor but no offender, and sends for as long as it lasts when it is its turn. Whoever's turn it is not is
// stopped, so that all have the same processor, within moments of each other, and none is in another's way. It returns
// the turns of each.
func InTurn(rounds int, contests ...Contest) (turns [][]Turn, err error) {
	rivals := make([]rival, len(contests))
	for i, o := range contests {
		r, failed := newRival(o)
		if failed != nil {
			return nil, errors.Join(err, failed)
		}
		defer func() { err = errors.Join(err, r.leave()) }()
		rivals[i] = r
	}
	turns = make([][]Turn, len(rivals))
	for range rounds {
		for _, i := range rand.Perm(len(rivals)) {
			t, failed := rivals[i].turn()
			if failed != nil {
				return nil, fmt.Errorf("%s: %w", contests[i].Name, failed)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// rival is a collector, stopped but for its turns, and its client.
type rival struct {
	collector *Collector
	client    *client
}

func newRival(o Contest) (rival, error) {
	c, err := startCollector(o)
	if err != nil {
		return rival{}, err
	}
	r := rival{collector: c}
	if r.client, err = o.startClient(o.Neighbor, c, new(Tally)); err == nil {
		err = c.signal(syscall.SIGSTOP)
	}
	if err != nil {
		return rival{}, errors.Join(err, r.leave())
	}
	return r, nil
}

// turn has the collector go on while its client sends.
func (r rival) turn() (Turn, error) {
	if err := r.collector.signal(syscall.SIGCONT); err != nil {
		return Turn{}, err
	}
	*r.client.into = Tally{}
	began := time.Now()
	r.client.begin()
	err := r.client.told()
	t := Turn{Tally: *r.client.into, Lasted: time.Since(began)}
	return t, errors.Join(err, r.collector.signal(syscall.SIGSTOP))
}

func (r rival) leave() error {
	if r.client != nil {
		r.client.end()
	}
	return errors.Join(r.collector.signal(syscall.SIGCONT), r.collector.stop(), r.collector.cgroup.remove())
}

// signal sends the process a signal.
func (c *Collector) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cmd.Process.Signal(s)
}
