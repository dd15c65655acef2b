// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// This file is a process to keep books about, in steps of a millisecond. It knows what is reachable and what is
// garbage. The books do not: they hear what the governor would tell them.

const mib = 1 << 20

// world is a process under a memory limit. Go's heap, less its overhead, has 222 MiB, of which the budget is 161 and
// 187 are critical.
type world struct {
	*testing.T
	rng     *rand.Rand
	books   *Books
	tenants []*simTenant
	at      int // milliseconds
	later   map[int][]func()
	each    func() // step
	unowned int64  // reachable, and nobody's

	marking bool
	fresh   int64 // allocated since the last mark
	goal    int64 // of that, at which Go starts the next
	garbage []*simBatch
	gcTime  time.Duration
	forced  int
	most    int64 // reachable at any time
}

// simTenant is a client and what the governor knows of it.
type simTenant struct {
	carrier Carrier
	carried int64 // the sum of what was told
	held    int64
	ceiling int64
	alive   int64 // the truth: bytes reachable, held or not

	batch    int64
	every    int // milliseconds from batch to batch; 0: it sends nothing
	next     int
	exporter *simExporter
	accepted []int // when
	refused  []int
}

// simExporter has one queue for all that comes, first in, first out.
type simExporter struct {
	rate  float64 // MiB per second that leave it
	sent  float64
	queue []*simBatch
}

// simBatch is reachable until it is in the world's garbage.
type simBatch struct {
	left  Left
	owner *simTenant
}

const (
	simPool     = 128 * mib
	simOverhead = 8 * mib
)

var simRuntime = Runtime{MemoryLimit: 230 * mib, GCPercent: 100, Overhead: simOverhead, Procs: 2}

func newWorld(t *testing.T, seed uint64, tenants ...*simTenant) *world {
	w := &world{
		T: t, rng: rand.New(rand.NewPCG(seed, 0)), later: map[int][]func(){}, tenants: tenants, goal: 4 * mib,
	}
	w.books = NewBooks(w.now(), Settings{GCFraction: 0.02})
	w.books.Resize(Size{Pool: simPool, Budget: Budget(simRuntime, 0, 0.25), Critical: CriticalLive(simRuntime, 0, 0.25)})
	for _, o := range tenants {
		o.carrier.Init(func(delta int64) { o.carried += delta })
	}
	return w
}

func (w *world) now() time.Time { return time.Unix(0, 0).Add(time.Duration(w.at) * time.Millisecond) }

func (w *world) after(ms int, f func()) { w.later[w.at+ms] = append(w.later[w.at+ms], f) }

// run lets the world go on until so many milliseconds after it began.
func (w *world) run(until int) {
	for ; w.at < until; w.at++ {
		for i := 0; i < len(w.later[w.at]); i++ { // more may come
			w.later[w.at][i]()
		}
		delete(w.later, w.at)
		if w.at%100 == 0 && w.books.Tick(w.now(), w.held()) {
			w.force()
		}
		seen := map[*simExporter]bool{}
		for _, t := range w.tenants {
			if !seen[t.exporter] {
				seen[t.exporter] = true
				t.exporter.send(w)
			}
			t.offer(w)
		}
		w.pace()
		w.most = max(w.most, w.reachable())
		if w.at%2000 == 0 {
			w.show()
		}
		if w.each != nil {
			w.each()
		}
	}
}

// show prints what the books say next to the truth.
func (w *world) show() {
	s := w.books.Stats()
	room, reserved := w.books.Room()
	line := fmt.Sprintf("%5.1f s: room %5.1f - %4.1f, unowned %4.1f (%4.1f), forced %d;", float64(w.at)/1000,
		float64(room)/mib, float64(reserved)/mib, float64(s.Unowned)/mib, float64(w.unowned)/mib, w.forced)
	for _, t := range w.tenants {
		line += fmt.Sprintf(" carried %4.1f (%4.1f)", float64(t.carried)/mib, float64(t.alive-t.held)/mib)
	}
	w.Log(line)
}

// offer lets the client send what is due.
func (t *simTenant) offer(w *world) {
	if t.every == 0 || w.at < t.next {
		return
	}
	t.next = w.at + t.every
	room, reserved := w.books.Room()
	total := reserved + t.batch
	for _, o := range w.tenants {
		total += o.held + o.carried
	}
	if total > room || t.held+t.carried+t.batch > t.ceiling {
		t.refused = append(t.refused, w.at)
		if w.books.Refused(w.now()) {
			w.force()
		}
		return
	}
	t.accepted = append(t.accepted, w.at)
	b := &simBatch{owner: t}
	t.held += t.batch
	t.alive += t.batch
	w.fresh += t.batch
	w.after(1+w.rng.IntN(10), func() { // it may be sent and gone before its lease ends
		t.exporter.queue = append(t.exporter.queue, b)
		w.after(w.rng.IntN(2), func() {
			t.held -= t.batch
			t.carried += w.books.End(&b.left, &t.carrier, t.batch)
		})
	})
}

// send makes garbage of what leaves the queue.
func (e *simExporter) send(w *world) {
	e.sent += e.rate * mib / 1000
	for len(e.queue) > 0 && e.sent >= float64(e.queue[0].owner.batch) {
		b := e.queue[0]
		e.queue = e.queue[1:]
		e.sent -= float64(b.owner.batch)
		b.owner.alive -= b.owner.batch
		w.garbage = append(w.garbage, b)
	}
	if len(e.queue) == 0 {
		e.sent = 0
	}
}

func (w *world) held() (n int64) {
	for _, t := range w.tenants {
		n += t.held
	}
	return n
}

func (w *world) reachable() int64 {
	n := w.unowned
	for _, t := range w.tenants {
		n += t.alive
	}
	return n
}

func (w *world) heap() int64 {
	n := w.reachable()
	for _, b := range w.garbage {
		n += b.owner.batch
	}
	return n
}

// pace collects where Go would: when the heap has doubled, or reaches the memory limit.
func (w *world) pace() {
	if w.fresh >= w.goal || w.fresh >= mib && w.heap() >= simRuntime.MemoryLimit-simOverhead {
		w.collect()
	}
}

// force collects because the books want it.
func (w *world) force() {
	w.forced++
	w.after(1, w.collect)
}

// collect marks at 1 GiB per second, which is what one of two processors does. What becomes garbage meanwhile
// survives it. Its notice is late, and the cleanups of what it found dead are early, soon after it, or as late as can be.
func (w *world) collect() {
	if w.marking {
		return
	}
	w.marking = true
	dead := len(w.garbage)
	took := int(w.reachable()/mib) + 1
	w.after(took, func() {
		w.marking = false
		w.gcTime += time.Duration(took) * time.Millisecond
		late := w.rng.IntN(4)
		for _, b := range w.garbage[:dead] {
			at := []int{0, late + w.rng.IntN(10), late + w.rng.IntN(100)}[w.rng.IntN(3)]
			w.after(at, func() { w.books.Gone(&b.left) })
		}
		w.garbage = w.garbage[dead:]
		r := simRuntime
		r.Live, r.GCTime = w.heap(), w.gcTime
		w.fresh, w.goal = 0, max(4*mib, r.Live)
		w.after(late, func() { w.books.Noticed(w.now(), r, w.held(), 0) })
	})
}
