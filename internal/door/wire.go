// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// wireShare is the part of the pool that requests may fill on their way in: one in so many bytes.
	wireShare = 8
	// owedStep is the size of the steps in which debt is told to the pool, so that its lock is not taken for
	// every frame. What is owed is the bytes on their way in rounded up, and up to one step more.
	owedStep = 64 << 10
)

// wire counts the bytes of requests that are in memory and that no lease covers: bodies and messages on their
// way in, and those being weighed, waiting in line or decoded. They are debt in the pool. All methods, and
// those of its peers, are safe for concurrent use and never wait.
//
// Nothing that is here already is thrown out. What bounds the bytes is that nothing more is let in while there
// are too many: over an eighth of the pool in all, or over an address's own part of that, a quarter while
// another address has requests here and three quarters while none has, so that whoever comes second finds
// room. The bytes of the very request that asks are not held against it: an address always gets one message
// through, whatever its size, and the bound is exceeded by one message at most.
type wire struct {
	memory  Memory
	total   atomic.Int64 // bytes
	claimed atomic.Int64 // of those, whose address is known
	owed    atomic.Int64 // what the pool was told
	telling sync.Mutex   // held while telling it
	flooded func()       // called where far too much is on its way in, and more comes; nil: nothing is

	mu struct {
		sync.Mutex
		peers  map[string]*peer
		active int64 // addresses that have requests here
		coming int64 // requests whose bytes are still coming, and not known to be whose
		ended  int64 // of those, since too much was on its way in: what they have brought is there until it is collected
	}
}

// peer is one address that sends requests.
type peer struct {
	wire    *wire
	address string
	bytes   atomic.Int64 // on their way in and known to be this one's

	// Guarded by wire.mu.
	users    int64 // who joined and has not left
	requests int64 // here
	coming   int64 // of those, whose bytes are still coming and not known to be this one's
	reading  int64 // whose turn it is
	typical  int64 // bytes of a message, as large as they lately were
}

func newWire(memory Memory) *wire {
	w := &wire{memory: memory}
	w.mu.peers = map[string]*peer{}
	return w
}

// limit is the number of bytes that may be on their way in.
func (w *wire) limit() int64 { return w.memory.Size() / wireShare }

// join returns the peer at an address, without a port. Whoever joins must leave.
func (w *wire) join(address string) *peer {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.mu.peers[address]
	if p == nil {
		p = &peer{wire: w, address: address, typical: w.limit() / 4}
		w.mu.peers[address] = p
	}
	p.users++
	return p
}

// leave forgets the peer once everybody has left who joined, and all of its requests have ended.
func (p *peer) leave() {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.users--
	p.forgetLocked()
}

func (p *peer) forgetLocked() {
	if p.users == 0 && p.requests == 0 {
		delete(p.wire.mu.peers, p.address)
	}
}

// begin counts a request of p as being here, until end. Its bytes may be coming by a way on which they cannot
// be told from those of others: then what is added with [wire.add] is laid to the peers by how many such
// requests each has, until arrived.
func (p *peer) begin(coming bool) {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	if p.requests++; p.requests == 1 {
		p.wire.mu.active++
	}
	if coming {
		p.coming++
		p.wire.mu.coming++
	}
}

// arrived tells that the bytes of one request that were coming have come.
func (p *peer) arrived() {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.coming--
	p.wire.mu.coming--
}

// end is the end of what begin began: the bytes of the request are given back.
func (p *peer) end() {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	if p.requests--; p.requests == 0 {
		p.wire.mu.active--
	}
	p.forgetLocked()
}

// add counts bytes of p, or gives them back where they are negative.
func (p *peer) add(bytes int64) {
	p.claim(bytes)
	p.wire.add(bytes)
}

// claim tells that bytes which were added as nobody's are p's, or no longer are where it is negative.
func (p *peer) claim(bytes int64) {
	p.bytes.Add(bytes)
	p.wire.claimed.Add(bytes)
}

// contended reports whether another address has requests here.
func (p *peer) contended() bool {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	return p.contendedLocked()
}

func (p *peer) contendedLocked() bool {
	return p.wire.mu.active > 1 || p.wire.mu.active == 1 && p.requests == 0
}

// turn returns true once the address has room for one more message, taken to be as large as its messages lately
// were; then read must be called. It returns false when that takes too long, or once draining says that nobody is to
// wait any more, and the message comes all the same.
func (p *peer) turn(ctx context.Context, patience time.Duration, draining <-chan struct{}) bool {
	if p.next() {
		return true
	}
	look, enough := time.NewTicker(lookEvery), time.NewTimer(patience)
	defer look.Stop()
	defer enough.Stop()
	for {
		select {
		case <-look.C:
			if p.next() {
				return true
			}
		case <-enough.C:
			return false
		case <-draining:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// next takes a turn, if there is room. One message always has its turn.
func (p *peer) next() bool {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	if p.reading > 0 && p.bytes.Load()+(p.reading+1)*p.typical > p.ownLocked() {
		return false
	}
	p.reading++
	return true
}

// read ends a turn with a message of that size; 0 if it did not come.
func (p *peer) read(bytes int64) {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.reading--
	if bytes > 0 {
		p.typical = max(bytes, p.typical-p.typical/8)
	}
}

// surprise tells that a request of p ends because its messages are larger than they lately were: they are taken for as
// large as those of an address of which nothing is known.
func (p *peer) surprise() {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.wire.mu.ended++
	p.typical = max(p.typical, p.wire.limit()/4)
}

// usual is how large the messages of p lately were, in bytes.
func (p *peer) usual() int64 {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	return p.typical
}

// ownLocked is the part of what may be on its way in that p may have.
func (p *peer) ownLocked() int64 {
	limit := p.wire.limit() / 4
	if !p.contendedLocked() {
		limit *= 3
	}
	return limit
}

// over reports whether p may not bring more bytes in for now, with what was observed and what is allowed. Own
// is what the request that asks has here already; 0 if it is still to come.
func (p *peer) over(own int64) (observed, limit int64, over bool) {
	w := p.wire
	limit = w.limit()
	total := w.total.Load()
	if total-own >= limit {
		return total - own, limit, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.ended = 0
	return p.overOwnLocked(own)
}

// overOwn is over for p's own part alone.
func (p *peer) overOwn(own int64) (observed, limit int64, over bool) {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	return p.overOwnLocked(own)
}

func (p *peer) overOwnLocked(own int64) (observed, limit int64, over bool) {
	w := p.wire
	observed = p.bytes.Load() - own
	if p.coming > 0 {
		nobodys := max(0, w.total.Load()-w.claimed.Load())
		observed += int64(float64(nobodys) * float64(p.coming) / float64(w.mu.coming+w.mu.ended))
	}
	limit = p.ownLocked()
	return observed, limit, observed >= limit
}

// add counts bytes of nobody in particular, or gives them back where they are negative.
func (w *wire) add(bytes int64) {
	total := w.total.Add(bytes)
	if owed := w.owed.Load(); total > owed || total <= owed-2*owedStep || total <= 0 && owed != 0 {
		w.tell()
		if bytes > 0 && w.flooded != nil && total > floodedFrom*w.limit() {
			w.flooded()
		}
	}
}

// tell makes what the pool was told agree with the total. It looks again after each change, since whoever
// counts looks at what is owed only after counting: one of the two sees the other.
func (w *wire) tell() {
	w.telling.Lock()
	defer w.telling.Unlock()
	for {
		total, owed := max(0, w.total.Load()), w.owed.Load()
		if total <= owed && total > owed-2*owedStep && (total > 0 || owed == 0) {
			return
		}
		want := (total + owedStep - 1) / owedStep * owedStep
		w.memory.Owe(want - owed)
		w.owed.Store(want)
	}
}
