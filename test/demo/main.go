// SPDX-License-Identifier: Apache-2.0

// Command demo shows in a minute what the governor promises: a neighbor and an offender in front of a collector,
// first one that memory_limiter protects, then a governed one, under the same load and the same memory limit.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/otel-governor/otel-governor/test/bomb"
)

func main() {
	bomb.BecomeClient()
	binary := flag.String("collector", "bin/otelcol-governor", "the collector that make build makes")
	flag.Parse()
	if err := demo(*binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func demo(binary string) error {
	const limit = 256 << 20
	neighbor := bomb.Load{
		Tenant: "neighbor", Protocol: bomb.GRPC, Payload: bomb.Usual, Size: 162_000,
		Clients: 1, PerSecond: 50, Deadline: 5 * time.Second,
	}
	offender := bomb.Load{
		Tenant: "offender", Protocol: bomb.GRPC, Payload: bomb.Spans, Size: 4_000_000,
		Clients: 16, Deadline: 5 * time.Second, Nice: 10,
	}
	fmt.Println("A collector with 256 MiB of memory. A neighbor sends it 50 usual batches of 162 kB a second; 16 clients of an\n" +
		"offender send 4 MB of empty spans each, 87 MB in memory, as fast as they are answered.")
	fmt.Printf("\n%s\n", bomb.Heading)
	var unlimited error
	for _, c := range []bomb.Contest{
		{Name: "neighbor alone", YAML: []string{bomb.Governor}, Lasts: 10 * time.Second},
		{Name: "memory_limiter", YAML: []string{bomb.MemoryLimiter}, Lasts: 20 * time.Second, Offender: offender},
		{Name: "governor", YAML: []string{bomb.Governor}, Lasts: 20 * time.Second, Offender: offender},
	} {
		c.Binary, c.Limit, c.Neighbor = binary, limit, neighbor
		row, err := c.Hold()
		if err != nil {
			return err
		}
		fmt.Println(row)
		unlimited = row.NoCgroup
	}
	if unlimited != nil {
		fmt.Printf("\nThere was no memory limit, so nobody was killed: no memory cgroup can be made here (%v).\n"+
			"A peak above 256 MiB is where the kernel would have killed.\n", unlimited)
	}
	return nil
}
