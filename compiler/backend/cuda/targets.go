package cuda

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

const (
	// name is the backend's, and that of the target that is the first card of this machine.
	name = "cuda"
	// DriverVariable is the environment variable with the path of the driver's library, where the system does not find
	// it.
	DriverVariable = "TILTH_CUDA_DRIVER"
	// usualDriver is the library's name.
	usualDriver = "libcuda.so.1"
	// asking bounds how long describing a card may take: a driver that was not used for a while takes seconds.
	asking = time.Minute
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

// find is a target by its name: this machine with its own card, or with one of a make.
func find(named string, threads int) (*target.Target, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	t = t.WithBackend(name).Clone()
	if k := slices.IndexFunc(chips, func(c target.GPU) bool { return c.Arch == named }); k >= 0 {
		gpu := chips[k]
		t.GPU = &gpu
		return t, t.Check()
	}
	if t.GPU, err = describe(t); err != nil {
		return nil, fmt.Errorf("target: describing the GPU of this machine: %w; name a chip to compile for one elsewhere: %s", err, strings.Join(targets()[1:], ", "))
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

// describe asks the driver.
func describe(host *target.Target) (*target.GPU, error) {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tilth-describe-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	text, err := ask(ctx, question{tc, host, dir, "describe.c", nil}, nil)
	if err != nil {
		return nil, err
	}
	return described(text)
}

// described reads what the program says.
func described(text string) (*target.GPU, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	const numbers = 10
	if len(lines) != 1+numbers {
		return nil, fmt.Errorf("the driver says %d things of it instead of %d", len(lines), 1+numbers)
	}
	var n [numbers]int
	for k := range n {
		var err error
		if n[k], err = strconv.Atoi(lines[1+k]); err != nil {
			return nil, fmt.Errorf("the driver says %q instead of a number", lines[1+k])
		}
	}
	return &target.GPU{
		Arch: archOf(n[0], n[1]), Model: lines[0], Multiprocessors: n[2], WarpThreads: n[3], BlockThreads: n[4], MultiprocessorThreads: n[5],
		ThreadRegisters: threadRegisters, MultiprocessorRegisters: n[6], BlockSharedBytes: int64(n[7]), MultiprocessorSharedBytes: int64(n[8]), L2Bytes: int64(n[9]),
	}, nil
}

// archOf is the instruction set of a compute capability. That of Hopper has instructions that later chips lack.
func archOf(major, minor int) string {
	arch := fmt.Sprintf("sm_%d%d", major, minor)
	if arch == "sm_90" {
		return "sm_90a"
	}
	return arch
}
