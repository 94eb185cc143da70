package target

import (
	"fmt"
	"regexp"
)

// GPU is everything about a graphics processor that a schedule or the generated code may depend on. A target with one
// has a CPU as well: that of its host.
type GPU struct {
	// Arch is the instruction set, as compilers call it: "sm_90a".
	Arch string `json:"arch"`
	// Model is the model of the card.
	Model string `json:"model"`
	// ID is which of this machine's cards it is, by the name that its driver has for it; empty = any. It is no part of
	// the description: elsewhere it means nothing.
	ID string `json:"-"`
	// Simulated is set for a card that the host only plays: the device that is measured is the host then.
	Simulated bool `json:"simulated,omitempty"`
	// Multiprocessors is how many blocks may be computed side by side at least.
	Multiprocessors int `json:"multiprocessors"`
	// WarpThreads is the number of threads that run in step, BlockThreads the most of a block, MultiprocessorThreads
	// the most that a multiprocessor holds.
	WarpThreads           int `json:"warp_threads"`
	BlockThreads          int `json:"block_threads"`
	MultiprocessorThreads int `json:"multiprocessor_threads"`
	// ThreadRegisters is the most 32-bit registers of a thread, MultiprocessorRegisters what all threads of a
	// multiprocessor have together.
	ThreadRegisters         int `json:"thread_registers"`
	MultiprocessorRegisters int `json:"multiprocessor_registers"`
	// BlockSharedBytes is the most shared memory of a block, MultiprocessorSharedBytes that of all blocks of a
	// multiprocessor.
	BlockSharedBytes          int64 `json:"block_shared_bytes"`
	MultiprocessorSharedBytes int64 `json:"multiprocessor_shared_bytes"`
	// Driver is the driver that compiles kernels when they are run, with its version, and Extensions what it adds to
	// its language, in its own words; empty for cards whose code a builder makes.
	Driver     string `json:"driver,omitempty"`
	Extensions string `json:"extensions,omitempty"`
	// L2Bytes is the cache that all multiprocessors share.
	L2Bytes int64 `json:"l2_bytes"`
}

// OpenCL is the instruction set of GPUs whose drivers compile OpenCL C.
const OpenCL = "opencl"

// HasWarps reports whether threads run in warps, whose threads exchange registers and multiply matrices together, and
// copies to shared memory go on by themselves: whether kernels may use the words for that.
func (g *GPU) HasWarps() bool { return g.Arch != OpenCL }

// maxDriverText bounds what is kept of what a driver says of itself.
const maxDriverText = 4096

// gpuArch keeps instruction sets fit for command lines of compilers.
var gpuArch = regexp.MustCompile(`^[a-z][a-z0-9_]{1,31}$`)

func (g *GPU) check() error {
	if !gpuArch.MatchString(g.Arch) {
		return fmt.Errorf("target: %q is not an instruction set of a GPU; use one such as sm_90a", g.Arch)
	}
	if len(g.Driver) > maxDriverText || len(g.Extensions) > maxDriverText {
		return fmt.Errorf("target: the GPU's driver says more of itself than %d bytes", maxDriverText)
	}
	counts := []struct {
		name       string
		have, most int64
	}{
		{"multiprocessors", int64(g.Multiprocessors), 1 << 16},
		{"warp_threads", int64(g.WarpThreads), 128},
		{"block_threads", int64(g.BlockThreads), 1024},
		{"multiprocessor_threads", int64(g.MultiprocessorThreads), 1 << 16},
		{"thread_registers", int64(g.ThreadRegisters), 1 << 10},
		{"multiprocessor_registers", int64(g.MultiprocessorRegisters), 1 << 24},
		{"block_shared_bytes", g.BlockSharedBytes, 1 << 24},
		{"multiprocessor_shared_bytes", g.MultiprocessorSharedBytes, 1 << 24},
		{"l2_bytes", g.L2Bytes, maxCacheBytes},
	}
	for _, c := range counts {
		if c.have < 1 || c.have > c.most {
			return fmt.Errorf("target: %s %d is not between 1 and %d", c.name, c.have, c.most)
		}
	}
	if g.BlockThreads%g.WarpThreads != 0 {
		return fmt.Errorf("target: block_threads %d is not a multiple of warp_threads %d", g.BlockThreads, g.WarpThreads)
	}
	return nil
}

// Warpgroups reports whether four warps together multiply matrices from shared memory, as those of sm_90a do.
func (g *GPU) Warpgroups() bool { return g.Arch == "sm_90a" }

func (g *GPU) readable() string { return slug(g.Model) + "-" + g.Arch }
