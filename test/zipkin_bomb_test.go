// SPDX-License-Identifier: Apache-2.0

//go:build stories

package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

// zipkinBombs are bodies of Zipkin's formats that are made for the worst, of so many bytes: what one of them takes for
// each is said in package footprint.
var zipkinBombs = []struct {
	name, path, media string
	body              func(size int) []byte
}{
	{"empty spans in thrift", "/api/v1/spans", "application/x-thrift", func(size int) []byte {
		return thriftList(slices.Repeat([][]byte{{0}}, size))
	}},
	{"empty tags in protobuf", "/api/v2/spans", "application/x-protobuf", func(size int) []byte {
		return bytes.Repeat([]byte("\x0a\x02\x5a\x00"), size/4)
	}},
	{"numbers in v1 JSON", "/api/v1/spans", "text/plain", func(size int) []byte {
		return []byte("[" + strings.Repeat("0,", size/2) + "0]")
	}},
	{"bare spans in v2 JSON", "/any/path", "application/json", func(size int) []byte {
		return []byte("[" + strings.Repeat(`{"id":"1"},`, size/11) + `{"id":"1"}]`)
	}},
}

// TestZipkinBombsLeaveTheNeighborAlone has eight clients send bombs to a Zipkin receiver as fast as they are answered:
// of a megabyte, and such as fit.
func TestZipkinBombsLeaveTheNeighborAlone(t *testing.T) {
	const clients = 8
	for _, b := range zipkinBombs {
		for _, size := range []int{1_000_000, 90_000} {
			t.Run(fmt.Sprint(size/1000, " kB of ", b.name), func(t *testing.T) {
				address, body := freeAddress(t), b.body(size)
				o := besideBombs(10 * time.Second)
				o.Name, o.Offender = b.name, bomb.Load{}
				o.YAML = append(o.YAML, fmt.Sprintf(`
receivers: {zipkin: {endpoint: '%s', include_metadata: true, middlewares: [{id: governor}]}}
service::pipelines::traces::receivers: [otlp, zipkin]`, address))
				answers := answerBook{byCode: map[int]int64{}}
				o.Beside = func(*bomb.Collector) (func() error, error) {
					ctx, cancel := context.WithCancel(t.Context())
					var all sync.WaitGroup
					for range clients {
						all.Go(func() {
							for ctx.Err() == nil {
								answers.post(ctx, "http://"+address+b.path, b.media, body)
							}
						})
					}
					return func() error {
						cancel()
						all.Wait()
						return nil
					}, nil
				}
				row := contend(t, o)
				t.Logf("\n%s\n%v%v", bomb.Heading, row, answers.byCode)
				wantUnharmed(t, row)
				if len(answers.byCode) == 0 {
					t.Error("nobody was answered")
				}
			})
		}
	}
}

// post sends a body as the offender and notes the answer, if there is one.
func (b *answerBook) post(ctx context.Context, url, media string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set(bomb.Header, "offender")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the code is what counts
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byCode[resp.StatusCode]++
}
