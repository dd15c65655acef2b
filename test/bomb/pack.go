// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// packed is the name of an encoding, and hands on what is packed in it already.
type packed string

// Name implements encoding.Compressor.
func (p packed) Name() string { return string(p) }

// Compress implements encoding.Compressor.
func (packed) Compress(w io.Writer) (io.WriteCloser, error) { return asItIs{w}, nil }

// Decompress implements encoding.Compressor. Nobody reads answers.
func (packed) Decompress(io.Reader) (io.Reader, error) { return bytes.NewReader(nil), nil }

type asItIs struct{ io.Writer }

// Close implements io.Closer.
func (asItIs) Close() error { return nil }

// pack packs a body in an encoding, or in none.
func pack(encoding string, body []byte) ([]byte, error) {
	switch encoding {
	case "":
		return body, nil
	case "gzip":
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		return b.Bytes(), nil
	case "zstd":
		return zstd(body), nil
	default:
		return nil, fmt.Errorf("no encoding %q", encoding)
	}
}

// zstd packs a body as zstd does, but that it finds nothing but many bytes that are the same.
func zstd(body []byte) []byte {
	const (
		window = 10 << 3   // 1 MiB
		most   = 128 << 10 // in one block
		raw    = 0         // what a block is, and whether it is the last
		same   = 1 << 1
		last   = 1
	)
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}
	block := func(size, kind int, content []byte) {
		b = append(append(b, byte(size<<3|kind), byte(size>>5), byte(size>>13)), content...)
	}
	for len(body) > 0 {
		n := 0
		for n < min(most, len(body)) && body[n] == body[0] {
			n++
		}
		if n > 100 {
			block(n, same, body[:1])
		} else {
			n = min(100, len(body))
			block(n, raw, body[:n])
		}
		body = body[n:]
	}
	block(0, last, nil)
	return b
}
