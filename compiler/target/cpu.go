package target

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The architectures. The last three are those of microcontrollers, which run programs without an operating system.
const (
	X86     = "x86-64"
	ARM     = "arm64"
	ARM32   = "arm32"
	RISCV   = "riscv64"
	ARMV7EM = "armv7e-m"
	ARMV8M  = "armv8.1-m"
	RISCV32 = "riscv32"
)

// MaxThreads bounds Threads and Cores; larger counts are typing errors.
const MaxThreads = 4096

// ErrThreads is the cause of errors about more threads than the target or this machine runs.
var ErrThreads = errors.New("ask for at most that many")

// maxCacheBytes bounds cache sizes; larger ones are typing errors.
const maxCacheBytes = 1 << 40

// CPU describes a processor as far as a schedule or the generated code may depend on it.
type CPU struct {
	// Arch is one of X86, ARM, ARM32, RISCV, ARMV7EM, ARMV8M and RISCV32.
	Arch string `json:"arch"`
	// Features lists the instruction set extensions by compiler names (avx2, fma, avx512f, neon, ...), sorted.
	Features []string `json:"features"`
	// Model is the processor model, or "generic".
	Model string `json:"cpu"`
	// Cores is the number of physical cores.
	Cores int `json:"cores"`
	// Threads is the number of threads of a kernel.
	Threads int `json:"threads"`
	// VectorBytes is the width of the widest vector register to use: 64 for AVX-512, 32 for AVX2, 16 for Neon. For
	// SVE it is the length given by the features, and for the V extension the minimum that the features guarantee.
	VectorBytes int `json:"vector_bytes"`
	// VectorRegisters is the number of architectural vector registers of that width.
	VectorRegisters int `json:"vector_registers"`
	// L1DataBytes and L2Bytes are per core; L3Bytes is shared by all. Zero means no such cache.
	L1DataBytes int64 `json:"l1_data_bytes"`
	L2Bytes     int64 `json:"l2_bytes"`
	L3Bytes     int64 `json:"l3_bytes"`
	// CacheLineBytes is the unit of coherence.
	CacheLineBytes int `json:"cache_line_bytes"`
}

// Has reports whether the processor has an instruction set extension.
func (c *CPU) Has(feature string) bool {
	_, ok := slices.BinarySearch(c.Features, feature)
	return ok
}

func (c *CPU) check() error {
	arch, ok := arches[c.Arch]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(arches)), ", ")
		return fmt.Errorf("target: architecture %q is not known; use one of %s", c.Arch, known)
	}
	for k, f := range c.Features {
		if !slices.Contains(arch.featureNames(), f) {
			return fmt.Errorf("target: %s has no feature %q; use some of %s", c.Arch, f, strings.Join(arch.featureNames(), ", "))
		}
		if k > 0 && f <= c.Features[k-1] {
			return fmt.Errorf("target: feature %s is a duplicate, or not sorted", f)
		}
	}
	if err := c.checkLength(); err != nil {
		return err
	}
	if c.Threads < 1 || c.Threads > MaxThreads || c.Cores < 1 || c.Cores > MaxThreads {
		return fmt.Errorf("target: %d threads on %d cores; both must be between 1 and %d", c.Threads, c.Cores, MaxThreads)
	}
	return c.checkSizes()
}

func (c *CPU) checkSizes() error {
	if n := c.VectorBytes; n < 8 || n > 256 || n&(n-1) != 0 {
		return fmt.Errorf("target: vector_bytes %d is not a power of two between 8 and 256", n)
	}
	if c.VectorRegisters < 1 || c.VectorRegisters > 256 {
		return fmt.Errorf("target: vector_registers %d is not between 1 and 256", c.VectorRegisters)
	}
	if c.L1DataBytes <= 0 || c.L2Bytes < 0 || c.L3Bytes < 0 || max(c.L1DataBytes, c.L2Bytes, c.L3Bytes) > maxCacheBytes {
		return fmt.Errorf("target: cache sizes %d, %d, %d bytes are not all valid", c.L1DataBytes, c.L2Bytes, c.L3Bytes)
	}
	if n := c.CacheLineBytes; n < 16 || n > 1024 || n&(n-1) != 0 {
		return fmt.Errorf("target: cache_line_bytes %d is not a power of two between 16 and 1024", n)
	}
	return nil
}
