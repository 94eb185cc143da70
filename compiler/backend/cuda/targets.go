package cuda

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// name is the name of the backend, and of the target for this machine's first GPU.
	name = "cuda"
	// DriverVariable is the environment variable with the path of the driver's library, if it is not in the system's
	// search path.
	DriverVariable = "TILTH_CUDA_DRIVER"
	// VisibleVariable is the driver's own variable with the numbers or UUIDs of the GPUs that it shows.
	VisibleVariable = "CUDA_VISIBLE_DEVICES"
	// usualDriver is the library's name.
	usualDriver = "libcuda.so.1"
)

// threadRegisters is the maximum number of registers per thread. The driver does not report it; all GPUs share it.
const threadRegisters = 255

// chips lists GPUs that kernels may be compiled for without one, the smallest of each generation's large ones.
var chips = []target.GPU{
	chip("sm_80", "A100", 108, 2048, 163<<10, 164<<10, 40<<20),
	chip("sm_86", "RTX 3090", 82, 1536, 99<<10, 100<<10, 6<<20),
	chip("sm_89", "RTX 4090", 128, 1536, 99<<10, 100<<10, 72<<20),
	chip("sm_90a", "H100", 132, 2048, 227<<10, 228<<10, 50<<20),
}

func chip(arch, model string, multiprocessors, threads int, blockShared, shared, l2 int64) target.GPU {
	return target.GPU{
		Arch: arch, Model: model, Multiprocessors: multiprocessors, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: threads,
		ThreadRegisters: threadRegisters, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: blockShared, MultiprocessorSharedBytes: shared, L2Bytes: l2,
	}
}

// chipNames lists the instruction sets of chips.
func chipNames() string {
	var names []string
	for _, c := range chips {
		names = append(names, c.Arch)
	}
	return strings.Join(names, ", ")
}

// host returns a machine like this one as a target of this backend, without a GPU yet.
func host(threads int) (*target.Target, error) {
	t, err := target.Host(threads)
	if err != nil {
		return nil, err
	}
	return t.WithBackend(name).Clone(), nil
}

// choose returns this machine with one of its GPUs, by default the first.
func choose(device string, threads int) (*target.Target, error) {
	t, err := host(threads)
	if err != nil {
		return nil, err
	}
	if t.GPU, err = choice(t, device); err != nil {
		return nil, fmt.Errorf("target: describing the GPU of this machine: %w; for a card elsewhere, compile for its chip (%s), or tune on a farm with --tracker",
			err, chipNames())
	}
	if err := checkArch(t.GPU); err != nil {
		return nil, fmt.Errorf("target: %w; choose another card (%s:NUMBER), or name a chip to compile for one elsewhere: %s", err, name, chipNames())
	}
	return t, t.Check()
}

// checkArch returns an error if kernels cannot be compiled for a GPU.
func checkArch(g *target.GPU) error {
	if err := macros.CheckNVPTX(g.Arch); err != nil {
		return fmt.Errorf("%s: %w", g.Model, err)
	}
	return nil
}

// archOf returns the instruction set of a compute capability. Hopper's has instructions that later chips lack.
func archOf(major, minor int) string {
	arch := fmt.Sprintf("sm_%d%d", major, minor)
	if arch == "sm_90" {
		return "sm_90a"
	}
	return arch
}
