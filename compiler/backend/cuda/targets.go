package cuda

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// name is the backend's, and that of the target that is the first card of this machine.
	name = "cuda"
	// DriverVariable is the environment variable with the path of the driver's library, where the system does not find
	// it.
	DriverVariable = "TILTH_CUDA_DRIVER"
	// VisibleVariable is the driver's own variable: the cards that it shows, by their numbers or UUIDs.
	VisibleVariable = "CUDA_VISIBLE_DEVICES"
	// usualDriver is the library's name.
	usualDriver = "libcuda.so.1"
)

// threadRegisters is the most registers of a thread, which the driver does not tell and all cards have.
const threadRegisters = 255

// chips are cards that kernels may be made for without one, the smallest of each generation's large ones.
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

// targets are the names of the targets that there are.
func targets() []string {
	list := []string{name}
	for _, c := range chips {
		list = append(list, c.Arch)
	}
	return list
}

// find is a target by its name: this machine with its first card, or with one of a make.
func find(named string, threads int) (*target.Target, error) {
	if named == name {
		return choose("", threads)
	}
	t, err := host(threads)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(chips, func(c target.GPU) bool { return c.Arch == named })
	if k < 0 {
		return nil, fmt.Errorf("target: %q is none of %s", named, strings.Join(targets(), ", "))
	}
	gpu := chips[k]
	t.GPU = &gpu
	return t, t.Check()
}

// host is a machine like this one, as a target of this backend that has no card yet.
func host(threads int) (*target.Target, error) {
	t, err := target.Host(threads)
	if err != nil {
		return nil, err
	}
	return t.WithBackend(name).Clone(), nil
}

// choose is this machine with one of its cards, the first where none is named.
func choose(device string, threads int) (*target.Target, error) {
	t, err := host(threads)
	if err != nil {
		return nil, err
	}
	if t.GPU, err = choice(t, device); err != nil {
		return nil, fmt.Errorf("target: describing the GPU of this machine: %w; for a card elsewhere, compile for its chip (%s), or tune on a farm with --tracker",
			err, strings.Join(targets()[1:], ", "))
	}
	if err := checkArch(t.GPU); err != nil {
		return nil, fmt.Errorf("target: %w; choose another card (%s:NUMBER), or name a chip to compile for one elsewhere: %s", err, name, strings.Join(targets()[1:], ", "))
	}
	if err := checkArch(t.GPU); err != nil {
		return nil, fmt.Errorf("target: %w; choose another card (%s:NUMBER), or name a chip to compile for one elsewhere: %s", err, name, strings.Join(targets()[1:], ", "))
	}
	return t, t.Check()
}

// driver is the library that the environment names, or the usual one.
func driver() string {
	if path := os.Getenv(DriverVariable); path != "" {
		return path
	}
	return usualDriver
}

// checkArch says why no kernels can be made for a card, if so.
func checkArch(g *target.GPU) error {
	if err := dialect.CheckNVPTX(g.Arch); err != nil {
		return fmt.Errorf("%s: %w", g.Model, err)
	}
	return nil
}

// archOf is the instruction set of a compute capability. That of Hopper has instructions that later chips lack.
func archOf(major, minor int) string {
	arch := fmt.Sprintf("sm_%d%d", major, minor)
	if arch == "sm_90" {
		return "sm_90a"
	}
	return arch
}
