// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Load is what the clients of one tenant send.
type Load struct {
	Tenant    string
	Protocol  Protocol
	Payload   Payload
	Size      int           // bytes of the payload, before any compression
	Encoding  string        // of messages over gRPC: gzip, zstd, or none
	Clients   int           // connections
	PerSecond int           // requests of them all, sent when they are due; 0: each client as fast as it is answered
	Volley    int           // or so many at once, again and again, after each client has sent a hundred that are empty
	Deadline  time.Duration // of each request
	Nice      int           // how much the process yields to others

	Address string        // filled in by the contest
	Lasts   time.Duration // so is this
}

// Tally is what became of a load.
type Tally struct {
	Sent    int
	Answers map[string]int
	Took    []time.Duration // of what was accepted, in ascending order, from when it was due
}

// Share is the part of what was sent that was accepted.
func (t Tally) Share() float64 { return float64(t.Answers[Accepted]) / float64(max(1, t.Sent)) }

// Quantile returns how long at most a part of what was accepted took.
func (t Tally) Quantile(q float64) time.Duration {
	if len(t.Took) == 0 {
		return 0
	}
	return t.Took[min(len(t.Took)-1, int(q*float64(len(t.Took))))]
}

// loadVariable carries a load to the process that sends it.
const loadVariable = "OTEL_GOVERNOR_TEST_LOAD"

// BecomeClient makes the process a client, if a [Contest] started it as one, and does not return then.
func BecomeClient() {
	text := os.Getenv(loadVariable)
	if text == "" {
		return
	}
	if err := beClient(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beClient prepares, says so, and for each line of standard input sends and says what became of it.
func beClient(text string) error {
	var l Load
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return err
	}
	body, err := l.body()
	if err != nil {
		return err
	}
	senders, err := l.senders(l.Clients)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	turns, said := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for turns.Scan() {
		if err := said.Encode(l.send(senders, body)); err != nil {
			return err
		}
	}
	return turns.Err()
}

// send sends for as long as the load lasts and waits for the answers.
func (l Load) send(senders []sender, body []byte) Tally {
	t := Tally{Answers: map[string]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	one := func(send sender, due time.Time) {
		ctx, cancel := context.WithDeadline(context.Background(), due.Add(l.Deadline))
		defer cancel()
		answer := send(ctx, body)
		took := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		t.Sent++
		t.Answers[answer]++
		if answer == Accepted {
			t.Took = append(t.Took, took)
		}
	}
	begin := time.Now()
	switch {
	case l.Volley > 0:
		for time.Since(begin) < l.Lasts {
			l.befriend(senders)
			for n := range l.Volley {
				all.Go(func() { one(senders[n%len(senders)], time.Now()) })
			}
			all.Wait()
		}
	case l.PerSecond == 0:
		for _, send := range senders {
			all.Go(func() {
				for time.Since(begin) < l.Lasts {
					one(send, time.Now())
				}
			})
		}
	default:
		for n := range int(l.Lasts.Seconds() * float64(l.PerSecond)) {
			due := begin.Add(time.Duration(n) * time.Second / time.Duration(l.PerSecond))
			time.Sleep(time.Until(due))
			all.Go(func() { one(senders[n%len(senders)], due) })
		}
	}
	all.Wait()
	slices.Sort(t.Took)
	return t
}

// befriend has each client send a hundred empty requests, so that its address is known for small ones.
func (l Load) befriend(senders []sender) {
	ctx, cancel := context.WithTimeout(context.Background(), l.Deadline)
	defer cancel()
	empty, _ := pack(l.Encoding, nil)
	for range 100 {
		for _, send := range senders {
			send(ctx, empty)
		}
	}
}
