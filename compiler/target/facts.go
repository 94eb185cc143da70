package target

import "cmp"

// Threads returns the number of device threads that kernels run on.
func (t *Target) Threads() int { return t.CPU.Threads }

// Model returns the device model, e.g. its marketing name, or "generic".
func (t *Target) Model() string { return t.CPU.Model }

// Arch returns the architecture of host code: X86, ARM, ARM32, RISCV, ARMV7EM, ARMV8M or RISCV32.
func (t *Target) Arch() string { return t.CPU.Arch }

// Processor returns the processor's model and the extensions that determine its speed, independent of the thread
// count: "intel-xeon-avx512-vnni-bf16-amx".
func (t *Target) Processor() string { return t.CPU.kind() }

// CacheBytes returns the size of the largest cache.
func (t *Target) CacheBytes() int64 { return max(t.CPU.L1DataBytes, t.CPU.L2Bytes, t.CPU.L3Bytes) }

// Triple returns the compiler's name for the architecture, e.g. "aarch64-linux-gnu".
func (t *Target) Triple() string { return t.CPU.Triple() }

// GCC returns the name of the architecture's gcc.
func (t *Target) GCC() string {
	return cmp.Or(arches[t.CPU.Arch].gcc, t.Triple()) + "-gcc"
}

// ClangFlags returns the flags that select the instruction set for clang.
func (t *Target) ClangFlags() []string { return t.CPU.ClangFlags() }

// GCCFlags returns the flags that select the instruction set for the architecture's gcc.
func (t *Target) GCCFlags() []string { return t.CPU.GCCFlags() }

// Siblings returns the same machine with each number of threads up to its cores.
func (t *Target) Siblings() []*Target {
	list := make([]*Target, t.CPU.Cores)
	for k := range list {
		list[k] = t.WithThreads(k + 1)
	}
	return list
}

// SameArchitecture reports whether measurements of another target are informative for this one: devices of one kind
// and architecture, with the same backend.
func (t *Target) SameArchitecture(other *Target) bool {
	return t.Backend == other.Backend && t.CPU.Arch == other.CPU.Arch
}

// Fact is a displayed property of a device: a text, a number, or Bytes.
type Fact struct {
	Name  string
	Value any
}

// Bytes is a size.
type Bytes int64

// Facts returns the displayed properties, the same ones for all devices of a kind.
func (t *Target) Facts() []Fact {
	c := t.CPU
	if g := t.GPU; g != nil && !g.Simulated {
		facts := []Fact{{"GPU", g.Model}, {"set", g.Arch}, {"multiprocessors", g.Multiprocessors}, {"shared", Bytes(g.BlockSharedBytes)}, {"L2", Bytes(g.L2Bytes)}}
		if t.hosts() {
			return append(facts, Fact{"host", c.Arch})
		}
		return append(facts, Fact{"host", c.Model}, Fact{"threads", c.Threads})
	}
	return []Fact{
		{"CPU", c.Model}, {"threads", c.Threads}, {"vector", Bytes(c.VectorBytes)},
		{"L1", Bytes(c.L1DataBytes)}, {"L2", Bytes(c.L2Bytes)}, {"L3", Bytes(c.L3Bytes)},
	}
}
