// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otel-governor/otel-governor/admission"
)

const (
	// maxMessage is the most that a message may be where nobody says otherwise, as in grpc.
	maxMessage = 4 << 20
	// gzipRatio is how many bytes deflate makes of one at most.
	gzipRatio = 1032
	// unpackerSize is what unpacking takes beside the bytes: mostly the window of deflate. It was 42 KiB.
	unpackerSize = 48 << 10
)

// gzipMagic begins what gzip packed, and no message of protobuf: it would be of a type that there is not.
var gzipMagic = []byte{0x1f, 0x8b}

// unpackers are kept for the next message.
var unpackers sync.Pool // of *gzip.Reader

// asPacked stands where grpc has what unpacks gzip: it hands on the bytes as they came. Grpc would unpack a message
// before anybody is asked whether there is room for it, and those of canceled calls as well.
type asPacked struct{}

// Type implements grpc.Decompressor.
func (asPacked) Type() string { return "gzip" }

// Do implements grpc.Decompressor.
func (asPacked) Do(r io.Reader) ([]byte, error) {
	var packed []byte
	var err error
	if whole, ok := r.(*mem.Reader); ok {
		packed = make([]byte, whole.Remaining())
		_, err = io.ReadFull(r, packed)
	} else {
		packed, err = io.ReadAll(r)
	}
	if err == nil && !bytes.HasPrefix(packed, gzipMagic) {
		err = gzip.ErrHeader
	}
	return packed, err
}

// isPacked reports whether data is what asPacked handed on, and returns it.
func isPacked(data mem.BufferSlice) (packed []byte, ok bool) {
	if len(data) != 1 {
		return nil, false
	}
	packed = data[0].ReadOnlyData()
	return packed, bytes.HasPrefix(packed, gzipMagic)
}

// unpackedSize is what a packed message says that it is unpacked, or the most that it can be where that is less. One
// that was packed in several parts says less.
func unpackedSize(packed []byte) int64 {
	if len(packed) < 4 {
		return 0
	}
	return min(int64(binary.LittleEndian.Uint32(packed[len(packed)-4:])), gzipRatio*int64(len(packed)))
}

// unpacker unpacks one message. What is much it does in a heavy place, in which it waits for nothing.
type unpacker struct {
	ctx    context.Context
	call   *call
	packed []byte
	left   int64 // bytes that it may still become
	gzip   *gzip.Reader
}

// Read implements io.Reader. It fills into, as far as there is as much.
func (u *unpacker) Read(into []byte) (n int, err error) {
	into = into[:min(int64(len(into)), u.left)]
	if len(into) == 0 {
		return 0, io.EOF
	}
	d := u.call.door
	refused := d.work(u.ctx, d.heavy, int64(len(into)), func() { n, err = u.fill(into) }, d.refusing(u.call.signal))
	if refused != nil {
		return 0, refused
	}
	u.left -= int64(n)
	if err != nil && err != io.EOF {
		err = corrupt(err)
	}
	return n, err
}

func (u *unpacker) fill(into []byte) (n int, err error) {
	if u.gzip == nil { // not before there is room for what comes
		u.call.peer.add(unpackerSize)
		if u.gzip, err = unpack(u.packed); err != nil {
			u.call.peer.add(-unpackerSize)
			u.gzip = nil
			return 0, err
		}
	}
	for n < len(into) && err == nil {
		var more int
		more, err = u.gzip.Read(into[n:])
		n += more
	}
	return n, err
}

// unpack begins to unpack.
func unpack(packed []byte) (*gzip.Reader, error) {
	if z, ok := unpackers.Get().(*gzip.Reader); ok {
		return z, z.Reset(bytes.NewReader(packed))
	}
	return gzip.NewReader(bytes.NewReader(packed))
}

// keepUnpacker keeps z for another message, and nothing of this one.
func keepUnpacker(z *gzip.Reader) {
	_ = z.Reset(bytes.NewReader(nil)) // which has no header
	unpackers.Put(z)
}

// unpackAll unpacks a message of another service at once, to no more than so many bytes.
func unpackAll(packed []byte, most int64) ([]byte, error) {
	z, err := unpack(packed)
	if err != nil {
		return nil, corrupt(err)
	}
	defer keepUnpacker(z)
	unpacked, err := io.ReadAll(io.LimitReader(z, most+1))
	switch {
	case err != nil:
		return nil, corrupt(err)
	case int64(len(unpacked)) > most:
		return nil, tooLarge(most)
	}
	return unpacked, nil
}

// close keeps what unpacked for another message.
func (u *unpacker) close() {
	if u.gzip != nil {
		keepUnpacker(u.gzip)
		u.call.peer.add(-unpackerSize)
	}
}

// unpack puts what the call brought unpacked in place of what it is packed, and keeps that counted as the body of a
// request over HTTP is. One that could never be admitted is asked a lease for all the same: that is the tenant's breach
// like any other, unless nothing is enforced.
func (d *Door) unpack(ctx context.Context, c *call, lease *admission.Lease) error {
	packed, ok := isPacked(c.body)
	if !ok {
		return nil
	}
	size := min(unpackedSize(packed), d.MaxMessage) // if it says more, that is seen when there is more
	u := &unpacker{ctx: ctx, call: c, packed: packed, left: d.MaxMessage + 1}
	b := d.newBody(c.peer.address, c.signal, u, size)
	b.step = max(bodyStep, size+1)
	tenant := sync.OnceValue(func() string { return d.known(ctx) })
	b.spare = func(size int64) bool {
		d.spared.give(c)
		return d.spared.take(c, tenant(), size, d.wire.limit())
	}
	defer func() {
		u.close()
		if c.unpacked == nil {
			b.free()
		}
	}()
	err := b.read(ctx, func(bytes int64) (err error) {
		*lease, err = d.tooLong(ctx, admission.Request{
			Share: admission.Share{Memory: bytes, WireSize: bytes}, Signal: c.signal, Provisional: true,
		}, b.most)
		return err
	})
	switch {
	case err != nil:
		return err
	case b.failed != nil:
		return b.failed
	case int64(len(b.data)) > d.MaxMessage:
		return tooLarge(d.MaxMessage)
	}
	c.drop()
	c.body, c.unpacked = mem.BufferSlice{mem.SliceBuffer(b.data)}, b
	return nil
}

// corrupt and tooLarge are what grpc answers to messages that it cannot unpack.
func corrupt(err error) error {
	return status.Errorf(codes.Internal, "grpc: failed to decompress the received message: %v", err)
}

func tooLarge(most int64) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message after decompression larger than max %d", most)
}
