// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	"k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/otel-governor/otel-governor/internal/pool"
)

// line is a fair line in front of one place.
type line interface {
	// join asks for the place for a flow, which has it at once if nobody else does.
	join(flow int)
	// next ends the turn of the flow that has the place, which it returns, so that another one has it.
	next() int
	waiting() int
}

// grants has so many flows in line, each with one request. One gives the place back and the next one is
// found: that alone is measured. Nobody sleeps, since it is the order that is measured and not the scheduler,
// and half of the flows have had their turn before they join the line again, off the clock.
func grants(newLine func(b *testing.B, flows int) line, flows int) func(*testing.B) {
	return func(b *testing.B) {
		l := newLine(b, flows+1)
		for i := range flows + 1 {
			l.join(i)
		}
		served := make([]int, 0, flows/2)
		for b.Loop() {
			if len(served) == cap(served) {
				b.StopTimer()
				for _, i := range served {
					l.join(i)
				}
				if l.waiting() != flows {
					panic("not one turn each")
				}
				served = served[:0]
				b.StartTimer()
			}
			served = append(served, l.next())
		}
	}
}

// poolLine is the pool with an account for each flow, where places are what is scarce. Among equals it is
// first come, first served.
type poolLine struct {
	*pool.Pool
	ctx    context.Context
	flows  []poolFlow
	holder int
}

type poolFlow struct {
	pool.Account
	pool.Lease
}

func newPoolLine(b *testing.B, flows int) line {
	return &poolLine{
		Pool: pool.New(pool.Settings{
			Capacity: 1 << 40, Slots: 1, MaxQueued: 1 << 20, MaxQueuedBytes: 1 << 40, QueueTimeout: time.Hour,
		}),
		ctx: unattended{b.Context()}, flows: make([]poolFlow, flows),
	}
}

func (l *poolLine) join(flow int) {
	f := &l.flows[flow]
	f.Lease = pool.Lease{}
	defer func() {
		if r := recover(); r != nil && r != any(left) {
			panic(r)
		}
	}()
	l.Acquire(l.ctx, &f.Lease, pool.Request{Account: &f.Account, Bytes: weight})
}

func (l *poolLine) next() int {
	flow := l.holder
	l.flows[flow].Release()
	l.holder = (flow + 1) % len(l.flows)
	return flow
}

func (l *poolLine) waiting() int { return int(l.Stats().Queued) }

// unattended is the context of a request that stays in line without a goroutine: the pool asks it for Done
// when it is in line and about to sleep, without a lock.
type unattended struct{ context.Context }

const left = "left alone in line"

func (unattended) Done() <-chan struct{} { panic(left) }

// queueSetLine is what Kubernetes' API server has for each of its priority levels, without metrics.
type queueSetLine struct {
	fq.QueueSet
	ctx    context.Context
	flows  []queueSetFlow
	holder int
}

type queueSetFlow struct {
	fq.Request
	hash uint64
}

// newQueueSetLine deals flows to so many queues, in hands as large as those of its workload levels.
func newQueueSetLine(queues int) func(*testing.B, int) line {
	return func(b *testing.B, flows int) line {
		var none noGauge
		set, err := queueset.NewQueueSetFactory(eventclock.Real{}).BeginConstruction(
			fq.QueuingConfig{DesiredNumQueues: queues, QueueLengthLimit: flows, HandSize: 6},
			metrics.RatioedGaugePair{RequestsWaiting: none, RequestsExecuting: none}, none, none)
		require.NoError(b, err)
		l := &queueSetLine{ctx: b.Context(), flows: make([]queueSetFlow, flows)}
		l.QueueSet = set.Complete(fq.DispatchingConfig{ConcurrencyLimit: 1, ConcurrencyDenominator: 1})
		for i := range l.flows {
			l.flows[i].hash = rand.Uint64()
		}
		return l
	}
}

func (l *queueSetLine) join(flow int) {
	f := &l.flows[flow]
	f.Request, _ = l.StartRequest(l.ctx, &request.WorkEstimate{InitialSeats: 1}, f.hash, "", "", nil, nil, func(queued bool) {
		if !queued {
			l.holder = flow
		}
	})
}

func (l *queueSetLine) next() int {
	flow := l.holder
	l.flows[flow].Finish(func() {})
	return flow
}

func (l *queueSetLine) waiting() int { return l.Dump(false).Waiting }

// noGauge is a metric that nobody looks at.
type noGauge struct{ metrics.RatioedGauge }

func (noGauge) Set(float64)            {}
func (noGauge) Add(float64)            {}
func (noGauge) SetDenominator(float64) {}
