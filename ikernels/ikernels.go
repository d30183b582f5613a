// Package ikernels has the programs of the ikernels that applications attach to their sockets, one folder each, and of the watch over these sockets.
package ikernels

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem echo -type ik_limit -type ik_flow -type ik_verdict -type ik_transaction -type ik_fault_code -type ik_fault_event -type ik_counts echo echo/echo.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem threshold -type ik_ring_counts threshold threshold/threshold.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem passthrough passthrough passthrough/passthrough.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem steering steering steering/steering.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem heavyhitters -type heavy_limit -type heavy_report heavyHitters heavy-hitters/heavy-hitters.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem deserialize deserialize deserialize/deserialize.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem replicate replicate replicate/replicate.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem stream stream stream/stream.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem parity -type parity_limit -type parity_head parity parity/parity.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem generator -type generator_limit -type ik_own_fault generator generator/generator.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem coalesce -type coalesce_limit -type coalesce_batch -type coalesce_entry coalesce coalesce/coalesce.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem meter meter meter/meter.bpf.c

// A new ikernel takes a folder, a line above and a line here.
var programs = map[string]func() (*ebpf.CollectionSpec, error){
	"echo": loadEcho, "threshold": loadThreshold, "passthrough": loadPassthrough, "steering": loadSteering,
	"heavy-hitters": loadHeavyHitters, "deserialize": loadDeserialize, "replicate": loadReplicate, "parity": loadParity, "generator": loadGenerator,
	"coalesce": loadCoalesce,
}

// Names are the ikernels that an application can create.
func Names() []string { return slices.Sorted(maps.Keys(programs)) }
