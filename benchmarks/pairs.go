// SPDX-License-Identifier: Apache-2.0

// Package benchmarks measures what this project costs beside what its peers cost. It has a go.mod of its
// own, so that they are no dependency of the product. `go run ./ratios` prints the table that counts;
// `go test -bench` runs any of it by itself, for a profile.
package benchmarks

import "testing"

// Pair is one row of the table: one thing that ours and a peer do in turns.
type Pair struct {
	What string
	Goal string // for the ratio, unless it says otherwise; it is printed, and nothing fails for missing it
	Ours Case
	Peer Case // without Run where nothing else does this
}

// Case is one side of a pair.
type Case struct {
	Name string
	Run  func(*testing.B)
}

// Pairs is the table.
var Pairs = []Pair{
	{
		What: "acquire + release, one worker", Goal: "≤ 2",
		Ours: Case{"pool", serial(newPool)}, Peer: Case{"x/sync", serial(newSemaphore)},
	},
	{
		What: "acquire + release, a worker per P", Goal: "≤ 2",
		Ours: Case{"pool", parallel(newPool)}, Peer: Case{"x/sync", parallel(newSemaphore)},
	},
	{
		What: "acquire + release, 8 workers per place", Goal: "≤ 2",
		Ours: Case{"pool", contended(newPool)}, Peer: Case{"x/sync", contended(newSemaphore)},
	},
	{ // the pool never waits for ever; neither does who uses the semaphore for what the pool is for
		What: "acquire + release, 8 workers per place", Goal: "≤ 2",
		Ours: Case{"pool", contended(newPool)}, Peer: Case{"x/sync, timeout", contended(newTimedSemaphore)},
	},
	{
		What: "grant to the next in line", Goal: "≤ 1.5, each ≤ 1 µs",
		Ours: Case{"100 000 wait", grants(newPoolLine, 100_000)}, Peer: Case{"1 000 wait", grants(newPoolLine, 1_000)},
	},
	{
		What: "grant to the next of 1 000 in line", Goal: "≤ 0.1",
		Ours: Case{"pool", grants(newPoolLine, 1_000)}, Peer: Case{"queueset, 64", grants(newQueueSetLine(64), 1_000)},
	},
	{
		What: "grant to the next of 1 000 in line", Goal: "≤ 0.1",
		Ours: Case{"pool", grants(newPoolLine, 1_000)}, Peer: Case{"queueset, 128", grants(newQueueSetLine(128), 1_000)},
	},
	{
		What: "grant to the next of 1 000 in line", Goal: "≤ 0.1",
		Ours: Case{"pool", grants(newPoolLine, 1_000)}, Peer: Case{"queueset, 1024", grants(newQueueSetLine(1024), 1_000)},
	},

	{
		What: "take a token of one rate", Goal: "≤ 1",
		Ours: Case{"tenant", takeRate}, Peer: Case{"x/time AllowN", allowRate},
	},

	{
		What: "admit + release, one worker", Goal: "≤ 400 ns, ≤ 1 alloc",
		Ours: Case{"governor", admitRelease(metricsOff)},
	},
	{ // ns say how fast the machine is today: x/sync takes 25 on the one that the goal was set for
		What: "admit + release, tenant and its name known, one rate", Goal: "≤ 400 ns / 25 ns",
		Ours: Case{"governor", admitReleaseNamed}, Peer: Case{"x/sync", serial(newSemaphore)},
	},
	{
		What: "decide to refuse: a tenant's rate", Goal: "≤ 300 ns / 25 ns, 0 allocs",
		Ours: Case{"tenant", refuseToken}, Peer: Case{"x/sync", serial(newSemaphore)},
	},
	{
		What: "decide to refuse: no place and no line", Goal: "≤ 300 ns / 25 ns, 0 allocs",
		Ours: Case{"pool", refusePlace}, Peer: Case{"x/sync", serial(newSemaphore)},
	},
	{ // here and below, reading a header is an allocation of its own: client.Metadata.Get copies
		What: "admit + release, known tenant, one rate", Goal: "≤ 400 ns, ≤ 1 alloc + header",
		Ours: Case{"governor", admitReleaseTenant},
	},
	{
		What: "admit + release, a worker per P",
		Ours: Case{"governor", admitReleaseParallel(metricsOff)},
	},
	{
		What: "admit + release, one worker, its metrics",
		Ours: Case{"metrics on", admitRelease(metricsOn)}, Peer: Case{"metrics off", admitRelease(metricsOff)},
	},
	{
		What: "refusal: batch too large", Goal: "the decision, and *Error",
		Ours: Case{"governor", refuseTooLarge(metricsOff)},
	},
	{
		What: "refusal: no place and no line", Goal: "the decision, and *Error",
		Ours: Case{"governor", refuseFull(metricsOff)},
	},
	{
		What: "refusal: a tenant's rate", Goal: "the decision, *Error, header",
		Ours: Case{"governor", refuseRate},
	},
	{
		What: "refusal: a tenant's concurrency", Goal: "the decision, *Error, header",
		Ours: Case{"governor", refuseConcurrency},
	},

	{
		What: "ConsumeTraces, 512 spans, metrics off",
		Ours: Case{"limiter", consume(limiterOf(metricsOff))},
		Peer: Case{"memory_limiter", consume(memoryLimiterOf(metricsOff))},
	},
	{
		What: "ConsumeTraces, 512 spans, metrics on",
		Ours: Case{"limiter", consume(limiterOf(metricsOn))},
		Peer: Case{"memory_limiter", consume(memoryLimiterOf(metricsOn))},
	},
	{
		What: "ConsumeTraces, 512 spans, metrics on",
		Ours: Case{"limiter", consume(limiterOf(metricsOn))}, Peer: Case{"no processor", consume(nothing)},
	},
	{
		What: "decode + ConsumeTraces, 512 spans, metrics on", Goal: "≤ 1.03 of a pipeline",
		Ours: Case{"limiter", receive(limiterOf(metricsOn))}, Peer: Case{"no processor", receive(nothing)},
	},

	{
		What: "weigh 512 spans × 8 attributes", Goal: "≤ 1",
		Ours: Case{"footprint", spans.weighing}, Peer: Case{"protobuf size", spans.sizing},
	},
	{
		What: "weigh 512 logs, body of 100 bytes", Goal: "≤ 1",
		Ours: Case{"footprint", records.weighing}, Peer: Case{"protobuf size", records.sizing},
	},
	{
		What: "weigh 2048 metrics × 4 points", Goal: "≤ 1",
		Ours: Case{"footprint", points.weighing}, Peer: Case{"protobuf size", points.sizing},
	},
	{
		What: "weigh 512 spans × 8 attributes",
		Ours: Case{"footprint", spans.weighing}, Peer: Case{"decoding", spans.decoding},
	},
	{
		What: "weigh 512 logs, body of 100 bytes",
		Ours: Case{"footprint", records.weighing}, Peer: Case{"decoding", records.decoding},
	},
	{
		What: "weigh 2048 metrics × 4 points",
		Ours: Case{"footprint", points.weighing}, Peer: Case{"decoding", points.decoding},
	},

	{
		What: "weigh undecoded, 512 spans × 8 attributes", Goal: "≤ 0.15",
		Ours: Case{"wire walk", spanRequest.wireWalk}, Peer: Case{"decoding", spanRequest.wireDecode},
	},
	{
		What: "weigh undecoded, 512 points × 8 attributes", Goal: "≤ 0.15",
		Ours: Case{"wire walk", pointRequest.wireWalk}, Peer: Case{"decoding", pointRequest.wireDecode},
	},
	{
		What: "weigh undecoded, 512 logs × 8 attributes", Goal: "≤ 0.15",
		Ours: Case{"wire walk", recordRequest.wireWalk}, Peer: Case{"decoding", recordRequest.wireDecode},
	},
	{
		What: "weigh undecoded JSON, 512 spans × 8 attributes",
		Ours: Case{"JSON walk", spanRequest.jsonWalk}, Peer: Case{"decoding", spanRequest.jsonDecode},
	},
	{
		What: "weigh undecoded JSON, 512 points × 8 attributes",
		Ours: Case{"JSON walk", pointRequest.jsonWalk}, Peer: Case{"decoding", pointRequest.jsonDecode},
	},
	{
		What: "weigh undecoded JSON, 512 logs × 8 attributes",
		Ours: Case{"JSON walk", recordRequest.jsonWalk}, Peer: Case{"decoding", recordRequest.jsonDecode},
	},

	{
		What: "follow 512 spans × 8 attributes until gone", Goal: "≤ 1.01",
		Ours: Case{"decoding, followed", decodeWatched}, Peer: Case{"decoding", spans.decoding},
	},
	{
		What: "build and follow one span until gone", Goal: "≤ 0.01",
		Ours: Case{"lifetime", watchOne}, Peer: Case{"decoding 512", spans.decoding},
	},

	{
		What: "memory sample, this machine", Goal: "≤ 30 µs, 0 allocs",
		Ours: Case{"cgroupmem", sampleMemory("/")}, Peer: Case{"ReadMemStats", readMemStats},
	},
	{ // of what a sample has, it reads MemAvailable only
		What: "memory sample, this machine", Goal: "≤ 30 µs, 0 allocs",
		Ours: Case{"cgroupmem", sampleMemory("/")}, Peer: Case{"gopsutil", readGopsutil},
	},
	{ // and MemAvailable and the machine's pressure
		What: "memory sample, this machine", Goal: "≤ 30 µs, 0 allocs",
		Ours: Case{"cgroupmem", sampleMemory("/")}, Peer: Case{"procfs", readProcfs("/")},
	},
	{
		What: "memory sample, files of cgroup v2", Goal: "≤ 30 µs, 0 allocs",
		Ours: Case{"cgroupmem", sampleMemory(treeV2)}, Peer: Case{"procfs", readProcfs(treeV2)},
	},
}
