package vta

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// The accelerator. A step of the matrix unit multiplies block inputs by a block x block matrix of weights; a step of
// the vector lanes computes block results.
const (
	block = 16
	// clock is the number of cycles in a second. The simulator is no slower, because the runner examines latencies by
	// its own clock.
	clock = 20e6
	// copyCycles is the latency of a copy, burstCycles that of each contiguous run of bytes, and beatBytes the bytes
	// that a cycle moves. A computation takes computeCycles and a cycle for each step.
	copyCycles, burstCycles, beatBytes, computeCycles = 64, 4, 8, 4
)

// memory is a scratchpad.
type memory int

// The scratchpads, in the order of the simulator's enum vta_memory.
const (
	inputs memory = iota
	weights
	sums
	results
)

// scratchpads holds the sizes of the scratchpads in bytes.
var scratchpads = [...]int64{inputs: 32 << 10, weights: 256 << 10, sums: 128 << 10, results: 32 << 10}

// names holds the names of the scratchpads in C and in errors.
var names = [...]string{inputs: "INPUT", weights: "WEIGHT", sums: "SUM", results: "RESULT"}

// alignBytes is the alignment of buffers in scratchpads: the granularity at which the simulator detects races.
const alignBytes = 64

// maxLoops limits the loops of an instruction, maxRings the buffers of a kernel.
const maxLoops, maxRings = 8, 32

// workspaceBytes is the memory of the simulator.
const workspaceBytes = 1 << 20

// header returns the properties of the accelerator for the simulator.
func header() string {
	var b strings.Builder
	define := func(name string, n int64) { fmt.Fprintf(&b, "#define VTA_%s %d\n", name, n) }
	for m, bytes := range scratchpads {
		define(names[m]+"_BYTES", bytes)
	}
	define("LOOPS", maxLoops)
	define("RINGS", maxRings)
	define("COPY_CYCLES", copyCycles)
	define("BURST_CYCLES", burstCycles)
	define("BEAT_BYTES", beatBytes)
	define("COMPUTE_CYCLES", computeCycles)
	define("WORKSPACE_BYTES", workspaceBytes)
	fmt.Fprintf(&b, "#define VTA_CLOCK %g\n", float64(clock))
	return b.String()
}

// storable lists the types of results.
var storable = []array.DType{array.Uint8, array.Int8, array.Int32, array.Float32}
