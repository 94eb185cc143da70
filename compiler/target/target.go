// Package target describes the machines that kernels are compiled for: instruction set, caches, threads and toolchain.
package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The architectures.
const (
	X86   = "x86-64"
	ARM   = "arm64"
	RISCV = "riscv64"
)

// maxThreads bounds Threads and Cores; larger counts are typing errors.
const maxThreads = 4096

// maxCacheBytes bounds a cache; larger ones are typing errors, too.
const maxCacheBytes = 1 << 40

// Target is everything about a machine that a schedule or the generated code may depend on.
type Target struct {
	// Arch is one of X86, ARM and RISCV.
	Arch string `json:"arch"`
	// Features are the instruction set extensions by their compiler names (avx2, fma, avx512f, neon, ...), sorted.
	Features []string `json:"features"`
	// CPU is the processor model, or "generic".
	CPU string `json:"cpu"`
	// Cores is the number of physical cores.
	Cores int `json:"cores"`
	// Threads is how many threads a kernel runs on.
	Threads int `json:"threads"`
	// VectorBytes is the width of the widest vector register to use: 64 for AVX-512, 32 for AVX2, 16 for Neon.
	VectorBytes int `json:"vector_bytes"`
	// VectorRegisters is the number of architectural vector registers of that width.
	VectorRegisters int `json:"vector_registers"`
	// L1DataBytes and L2Bytes are those of one core; L3Bytes is shared by all. Zero when there is no such cache.
	L1DataBytes int64 `json:"l1_data_bytes"`
	L2Bytes     int64 `json:"l2_bytes"`
	L3Bytes     int64 `json:"l3_bytes"`
	// CacheLineBytes is the unit of coherence.
	CacheLineBytes int `json:"cache_line_bytes"`
	// Toolchain names the compiler and its version, e.g. "clang-19.1.7"; empty until one is chosen.
	Toolchain string `json:"toolchain,omitempty"`
}

// Has reports whether the target has an instruction set extension.
func (t *Target) Has(feature string) bool {
	_, ok := slices.BinarySearch(t.Features, feature)
	return ok
}

// WithToolchain is a copy of the target for a given compiler.
func (t *Target) WithToolchain(toolchain string) *Target {
	c := *t
	c.Toolchain = toolchain
	return &c
}

// Check says what is wrong with the target, if anything.
func (t *Target) Check() error {
	arch, ok := arches[t.Arch]
	if !ok {
		return fmt.Errorf("target: architecture %q is not known; use one of %s", t.Arch, strings.Join(archNames(), ", "))
	}
	for k, f := range t.Features {
		if !arch.knows(f) {
			return fmt.Errorf("target: %s has no feature %q; use some of %s", t.Arch, f, strings.Join(arch.featureNames(), ", "))
		}
		if k > 0 && f <= t.Features[k-1] {
			return fmt.Errorf("target: feature %s comes twice, or is not sorted", f)
		}
	}
	if t.Threads < 1 || t.Threads > maxThreads || t.Cores < 1 || t.Cores > maxThreads {
		return fmt.Errorf("target: %d threads on %d cores; both must be between 1 and %d", t.Threads, t.Cores, maxThreads)
	}
	return t.checkSizes()
}

func (t *Target) checkSizes() error {
	if n := t.VectorBytes; n < 8 || n > 256 || n&(n-1) != 0 {
		return fmt.Errorf("target: vector_bytes %d is not a power of two between 8 and 256", n)
	}
	if t.VectorRegisters < 1 || t.VectorRegisters > 256 {
		return fmt.Errorf("target: vector_registers %d is not between 1 and 256", t.VectorRegisters)
	}
	if t.L1DataBytes <= 0 || t.L2Bytes < 0 || t.L3Bytes < 0 || max(t.L1DataBytes, t.L2Bytes, t.L3Bytes) > maxCacheBytes {
		return fmt.Errorf("target: cache sizes %d, %d, %d bytes are not all valid", t.L1DataBytes, t.L2Bytes, t.L3Bytes)
	}
	if n := t.CacheLineBytes; n < 16 || n > 1024 || n&(n-1) != 0 {
		return fmt.Errorf("target: cache_line_bytes %d is not a power of two between 16 and 1024", n)
	}
	return nil
}

// Encode is the target as JSON, the form in which it travels and that Decode reads.
func (t *Target) Encode() []byte {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(data, '\n')
}

// Decode reads and checks a target from its JSON form. Unknown fields are refused: they would silently be ignored.
func Decode(data []byte) (*Target, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	t := &Target{}
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("target: not a target description: %w", err)
	}
	if dec.More() {
		return nil, errors.New("target: something follows the target description")
	}
	return t, t.Check()
}
