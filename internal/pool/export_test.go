// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"math"
)

// Audit counts from scratch all that p keeps figures of, given all accounts and leases that there are, and
// says which figure is wrong or who waits that should not.
func (p *Pool) Audit(accounts []*Account, leases []*Lease, carried map[*Account]int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &audit{Pool: p, accounts: accounts, held: map[*Account]party{}}
	a.leases(leases)
	a.carries(carried)
	a.lines()
	a.parties()
	a.turns()
	return a.err
}

type audit struct {
	*Pool
	accounts []*Account
	held     map[*Account]party // what they hold, and then what they wait for
	encoded  int64
	err      error
}

// equal remembers the first difference.
func (a *audit) equal(what string, is, want any) {
	if a.err == nil && is != want {
		a.err = fmt.Errorf("%s is %v and should be %v", what, is, want)
	}
}

// add adds d to what account a has by recount.
func (a *audit) add(account *Account, d party) {
	t := a.held[account]
	t.add(d)
	a.held[account] = t
}

func (a *audit) leases(leases []*Lease) {
	var held, used, encoded int64
	for _, l := range leases {
		if l.account == nil {
			continue // never asked for
		}
		own := l.bytes
		for _, s := range l.others {
			a.add(s.Account, party{held: s.Bytes})
			own -= s.Bytes
		}
		a.equal("share of an owner is negative", own < 0, false)
		a.add(l.account, party{held: own, used: int64(l.slots)})
		held += l.bytes
		used += int64(l.slots)
		if l.provisional {
			encoded += l.bytes
		}
	}
	a.equal("held", a.mu.held, held)
	a.equal("used", a.mu.used, used)
	a.encoded = encoded
}

func (a *audit) carries(carried map[*Account]int64) {
	var all int64
	for account, n := range carried {
		a.add(account, party{carried: n})
		all += n
	}
	a.equal("carried", a.mu.carried, all)
}

func (a *audit) lines() {
	var queued, bytes, growing int64
	for _, account := range a.accounts {
		for _, q := range account.queues {
			var n int64
			for w := q.head; w != nil; w = w.next {
				a.waits(w)
				bytes += w.parked
				if w.lease.provisional {
					a.encoded += w.parked
				}
				n++
			}
			queued += n
			a.equal("length of a queue", q.len, n)
			a.place(q)
		}
		a.equal("among the claims", account.claim.on(), account.waiting > 0)
	}
	a.equal("queued", a.mu.queued, queued)
	a.equal("queued bytes", a.mu.queuedBytes, bytes)
	a.equal("encoded", a.mu.encoded, a.encoded)
	holders := map[*Lease]bool{}
	for w := a.mu.growth.head; w != nil; w = w.next {
		a.waits(w)
		if h := w.lease.holder(); !holders[h] {
			holders[h] = true
			growing++
		}
	}
	a.equal("growing", a.mu.growing, growing)
}

func (a *audit) waits(w *waiter) {
	a.equal("done and waits", w.done, false)
	own := w.bytes
	for _, s := range w.others {
		a.add(s.Account, party{wanted: s.Bytes})
		own -= s.Bytes
	}
	a.add(w.account, party{waiting: w.slots, wanted: own})
}

// place finds q where it belongs.
func (a *audit) place(q *queue) {
	a.equal("in order", q.place.on(), q.head != nil)
	if q.head == nil {
		a.equal("late, without a head", q.late.on(), false)
		return
	}
	weight := q.account.weight()
	a.equal("class of share", q.place.class, classOf(a.dominance(q.account.party, weight)))
	a.equal("class of need", q.need, needOf(q.head.bytes))
	a.equal("late", q.late.on(), q.head.late)
	if q.late.on() {
		a.equal("class of late", q.late.class,
			classOf(float64(q.account.taken()+q.head.bytes)/float64(max(1, a.mu.capacity))/weight))
	}
}

func (a *audit) parties() {
	var strangers party
	var members, parties int64
	var weights float64
	for _, account := range a.accounts {
		t := a.held[account]
		a.equal("what an account has", account.party, t)
		active := t.held > 0 || t.used > 0 || t.carried > 0 || t.waiting > 0
		a.equal("active", account.active, active)
		if !account.limits.Stranger {
			if active {
				parties++
				weights += account.weight()
			}
			continue
		}
		strangers.add(t)
		if active {
			members++
		}
	}
	if members > 0 {
		parties++
		weights++
	}
	a.equal("strangers", a.mu.strangers, strangers)
	a.equal("members", a.mu.members, members)
	a.equal("parties", a.mu.parties, parties)
	a.equal("weights are right", math.Abs(a.mu.weights-weights) < 1e-9, true)
}

// turns finds nobody waiting that could have its turn, by looking at everybody.
func (a *audit) turns() {
	var late bool
	heads := []*waiter{}
	for _, account := range a.accounts {
		var head *waiter
		for _, q := range account.queues {
			if q.head != nil && !q.line.gate.full() && (head == nil || q.head.age < head.age) {
				head = q.head
			}
		}
		if head != nil {
			heads = append(heads, head)
			late = late || head.late && !a.overShareLocked(account, head.bytes)
		}
	}
	blocked := false // by a holder within its share that wants more
	for w := a.mu.growth.head; w != nil; w = w.next {
		if w.gate.full() {
			continue
		}
		over := a.overShareLocked(w.account, w.bytes)
		if !over && !blocked {
			a.equal("growth within its share fits and waits", a.freeLocked(w.gate, 0, w.bytes), false)
		}
		blocked = blocked || !over
	}
	for _, w := range heads {
		if !blocked && a.freeLocked(w.gate, w.slots, w.bytes) && (!late || !a.overShareLocked(w.account, w.bytes)) {
			a.equal("fits and waits", w.bytes, nil)
		}
	}
}
