// SPDX-License-Identifier: Apache-2.0

package pool

// Stats is the state of a pool at one moment.
type Stats struct {
	Held, Capacity    int64 // bytes
	Carried, Owed     int64 // bytes taken beside those held
	Used, Slots       int64 // leases
	Queued, MaxQueued int64 // waiters in line
	QueuedBytes       int64 // what they wait with
	Existing          int64 // of all the bytes held, waiting and owed, those that are in memory already
	Coming            int64 // those that provisional leases hold or wait for
	Growing           int64 // requests of holders that wait for more
}

// Stats returns what the pool holds now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Held: p.mu.held, Capacity: p.mu.capacity, Carried: p.mu.carried, Owed: p.mu.owed,
		Used: p.mu.used, Slots: p.slots,
		Queued: p.mu.queued, MaxQueued: p.maxQueued, QueuedBytes: p.mu.queuedBytes,
		Growing:  p.mu.growth.len,
		Existing: p.mu.held + p.mu.queuedBytes - p.mu.encoded + p.mu.owed,
		Coming:   p.mu.encoded,
	}
}

// AccountStats returns the bytes that a has now, held and carried, and the slots that it holds.
func (p *Pool) AccountStats(a *Account) (bytes, slots int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return a.taken(), a.used
}

// GateStats returns the bytes of the batches that pass g now, their number, and how many may.
func (p *Pool) GateStats(g *Gate) (bytes, used, limit int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return g.bytes, g.used, g.max
}
