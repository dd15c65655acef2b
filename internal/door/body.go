// SPDX-License-Identifier: Apache-2.0

package door

import (
	"cmp"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// bodyStep is the room that a body begins with. It doubles whenever it is full, so that a slow sender holds no more
// than twice of what it sent, whatever length it announced.
const bodyStep = 4 << 10

// body is what one request brings, on its way into memory: a body of HTTP as it comes, or a message of gRPC as it is
// unpacked. One goroutine reads it.
type body struct {
	door   *Door
	peer   *peer
	signal string
	source io.Reader
	length int64                 // as announced, or -1
	step   int64                 // the room to begin with
	most   int64                 // bytes that could ever be admitted
	data   []byte                // what has come; the capacity is what is counted
	failed error                 // what ended it early, of its own
	pace   *pace                 // at which it must come; nil where all of it is here
	spare  func(size int64) bool // lets it have a size that there is no room for; nil: never

	patience time.Duration // how long it may still wait for room
	gone     bool          // its bytes are no longer counted
}

// newBody begins with what a request brings that carries signal, from an address. It must be freed.
func (d *Door) newBody(address, signal string, source io.Reader, length int64) *body {
	b := &body{
		door:     d,
		peer:     d.wire.join(address),
		signal:   signal,
		source:   source,
		length:   length,
		step:     bodyStep,
		most:     d.Memory.MaxBatch(),
		patience: d.QueueTimeout,
	}
	b.peer.begin(false)
	return b
}

// receive begins with the body of r.
func (d *Door) receive(w http.ResponseWriter, r *http.Request, signal string) *body {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr // of a socket without ports
	}
	b := d.newBody(host, signal, r.Body, r.ContentLength)
	b.pace = newPace(http.NewResponseController(w))
	return b
}

// free lets go of the bytes and takes them off the count. It may be called more than once, by whoever reads
// the body.
func (b *body) free() {
	if b.gone {
		return
	}
	b.gone = true
	b.door.bodies.resize(b, 0)
	b.data = nil
	b.peer.end()
	b.peer.leave()
}

// read reads the body to its end, or to a failure of its own, which it keeps. It fails when the body is
// refused: because there is no room, because it came too slowly, or with what large says to one that is known
// to be larger than anything that could be admitted. If large lets it be, it is read whatever its size.
func (b *body) read(ctx context.Context, large func(bytes int64) error) (err error) {
	b.door.bodies.enter(b.pace)
	defer func() {
		if b.door.bodies.leave(b.pace); b.pace.late() {
			err = b.tooSlow(ctx)
		}
	}()
	for size := b.length; ; size = int64(len(b.data)) {
		if size > b.most {
			if err := large(size); err != nil {
				return err
			}
			b.most = math.MaxInt64 - 1
		}
		if len(b.data) == cap(b.data) {
			if err := b.grow(ctx); err != nil {
				return err
			}
		}
		n, err := b.source.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		b.pace.advance(n)
		switch {
		case err == io.EOF && int64(len(b.data)) <= b.most || b.pace.late():
			return nil
		case err != nil && err != io.EOF:
			b.failed = err
			return nil
		}
	}
}

// grow makes room for more bytes, once others leave it.
func (b *body) grow(ctx context.Context) error {
	held := int64(cap(b.data))
	size := min(max(2*held, b.step), b.most+1)
	if b.length >= held { // one more, so that the end is found without growing
		size = min(size, b.length+1)
	}
	if err := b.room(ctx, size); err != nil {
		return err
	}
	b.data = append(make([]byte, 0, size), b.data...)
	return nil
}

// replay is a body that came in, as the next handler reads it: the same bytes and the same end.
//
// The handler is taken to read it as io.ReadAll does, into pieces and then into one, and to decode that. Until
// the body is read to its end or closed it is owed 3.4 times (once here, 1.4 times in pieces and once in one,
// as measured); from then on once, until somebody knows better.
type replay struct {
	memory Memory
	source io.Closer
	rest   []byte
	end    error
	size   int64
	owed   atomic.Int64
}

// handOn turns b, which is freed, into what the next handler reads and then closes the source by.
func (b *body) handOn(source io.Closer) *replay {
	p := &replay{
		memory: b.door.Memory,
		source: source,
		rest:   b.data,
		end:    cmp.Or(b.failed, io.EOF),
		size:   int64(len(b.data)),
	}
	p.owed.Store(p.size * 34 / 10)
	p.memory.Owe(p.owed.Load())
	b.free()
	return p
}

// Read implements io.Reader.
func (p *replay) Read(into []byte) (int, error) {
	if len(p.rest) == 0 {
		p.drop()
		return 0, p.end
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (p *replay) Close() error {
	p.drop()
	p.end = http.ErrBodyReadAfterClose
	return p.source.Close()
}

// drop lets go of the bytes.
func (p *replay) drop() {
	p.rest = nil
	p.owe(p.size)
}

// owe lowers what is owed to at most that many bytes. It is safe for concurrent use.
func (p *replay) owe(bytes int64) {
	for owed := p.owed.Load(); owed > bytes; owed = p.owed.Load() {
		if p.owed.CompareAndSwap(owed, bytes) {
			p.memory.Owe(bytes - owed)
			return
		}
	}
}
