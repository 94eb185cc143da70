package target

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// GPU describes the properties of a graphics processor that schedules and generated code depend on. A target with a
// GPU also has a CPU, that of its host.
type GPU struct {
	// Arch is the instruction set by its compiler name: "sm_90a".
	Arch string `json:"arch"`
	// Model is the model of the GPU.
	Model string `json:"model"`
	// ID selects one of this machine's GPUs by its driver name; empty means any. It is not part of the description,
	// since it has no meaning on other machines.
	ID string `json:"-"`
	// Simulated is set for a GPU simulated on the host. Measurements are then those of the host.
	Simulated bool `json:"simulated,omitempty"`
	// Multiprocessors is the minimum number of blocks that can run concurrently.
	Multiprocessors int `json:"multiprocessors"`
	// WarpThreads is the number of threads that run in lockstep, BlockThreads the maximum per block,
	// MultiprocessorThreads the maximum per multiprocessor.
	WarpThreads           int `json:"warp_threads"`
	BlockThreads          int `json:"block_threads"`
	MultiprocessorThreads int `json:"multiprocessor_threads"`
	// ThreadRegisters is the maximum number of 32-bit registers of a thread, MultiprocessorRegisters the total of a
	// multiprocessor.
	ThreadRegisters         int `json:"thread_registers"`
	MultiprocessorRegisters int `json:"multiprocessor_registers"`
	// BlockSharedBytes is the maximum shared memory of a block, MultiprocessorSharedBytes the total of a
	// multiprocessor.
	BlockSharedBytes          int64 `json:"block_shared_bytes"`
	MultiprocessorSharedBytes int64 `json:"multiprocessor_shared_bytes"`
	// Driver identifies the driver that compiles kernels at run time, with its version, and Extensions lists its
	// language extensions; empty for GPUs whose code a builder generates.
	Driver     string `json:"driver,omitempty"`
	Extensions string `json:"extensions,omitempty"`
	// L2Bytes is the size of the cache shared by all multiprocessors.
	L2Bytes int64 `json:"l2_bytes"`
}

// OpenCL is the instruction set of GPUs whose drivers compile OpenCL C.
const OpenCL = "opencl"

// HasWarps reports whether kernels may use warp operations: register exchange, matrix products, and asynchronous
// copies to shared memory.
func (g *GPU) HasWarps() bool { return g.Arch != OpenCL }

// maxDriverText limits the stored driver description.
const maxDriverText = 4096

// gpuArch restricts instruction set names to those safe on compiler command lines.
var gpuArch = regexp.MustCompile(`^[a-z][a-z0-9_]{1,31}$`)

func (g *GPU) check() error {
	if !gpuArch.MatchString(g.Arch) {
		return fmt.Errorf("target: %q is not an instruction set of a GPU; use one such as sm_90a", g.Arch)
	}
	if len(g.Driver) > maxDriverText || len(g.Extensions) > maxDriverText {
		return fmt.Errorf("target: the driver and extensions of the GPU exceed %d bytes", maxDriverText)
	}
	counts := []struct {
		name      string
		have, max int64
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
		if c.have < 1 || c.have > c.max {
			return fmt.Errorf("target: %s %d is not between 1 and %d", c.name, c.have, c.max)
		}
	}
	if g.BlockThreads%g.WarpThreads != 0 {
		return fmt.Errorf("target: block_threads %d is not a multiple of warp_threads %d", g.BlockThreads, g.WarpThreads)
	}
	return nil
}

// Warpgroups reports whether four warps jointly multiply matrices from shared memory, as on sm_90a.
func (g *GPU) Warpgroups() bool { return g.Arch == "sm_90a" }

func (g *GPU) readable() string { return slug(g.Model) + "-" + g.Arch }

// assemblers maps GPU instruction sets to the first version of NVIDIA's assembler that supports them, and the PTX
// version of their code.
var assemblers = map[string][2]int{
	"sm_80": {11, 2}, "sm_86": {11, 2}, "sm_87": {11, 4}, "sm_89": {11, 8}, "sm_90": {11, 8}, "sm_90a": {12, 4},
}

// Assembled reports whether any assembler version supports the target, i.e. whether it is an NVIDIA GPU.
func (t *Target) Assembled() bool {
	if t.GPU == nil || t.GPU.Simulated {
		return false
	}
	_, known := assemblers[t.GPU.Arch]
	return known
}

// Assembles reports whether the given version of NVIDIA's assembler, such as 12.4.131, supports the target's GPU.
func (t *Target) Assembles(version string) bool {
	if !t.Assembled() {
		return false
	}
	smallest := assemblers[t.GPU.Arch]
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, bad := strconv.Atoi(minor)
	return err == nil && bad == nil && (a > smallest[0] || a == smallest[0] && b >= smallest[1])
}
