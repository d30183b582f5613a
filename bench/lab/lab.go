// Package lab has the benchmark suites of λ-NIC's internals, which contributors run before and after a change. They need test
// rigs, so no installed program has them.
package lab

import "github.com/lambdanic/lambdanic/bench/measure"

// All lists the suites.
func All() []measure.Suite {
	return []measure.Suite{
		{Name: "compiler", About: "ordinary C: what loads, how fast it runs, how long compiling takes", Benchmarks: benchmarkNames(), Run: runCompiler},
		{Name: "queue", About: "answers straight from XDP against those behind a queue, by cpumap and AF_XDP", Run: runQueue},
		{Name: "replies", About: "replies of many packets: pulled against multiplied", Run: runReplies},
		{Name: "transport", About: "messages of many packets, 256 KiB there and 64 KiB back: the NIC against a process, and where packets are lost", Run: runTransport},
	}
}
