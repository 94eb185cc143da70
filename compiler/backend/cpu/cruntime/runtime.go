package cruntime

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src/*
var files embed.FS

// Read returns embedded sources by name. It panics if a name does not exist, which is a programming error.
func Read(names ...string) []toolchain.File {
	list := make([]toolchain.File, len(names))
	for k, name := range names {
		text, err := files.ReadFile("src/" + name)
		if err != nil {
			panic(err)
		}
		list[k] = toolchain.File{Name: name, Text: string(text)}
	}
	return list
}

// PoolSources returns the sources of the thread pool.
func PoolSources() []toolchain.File { return Read("pool.c", "spread.c", "tiles.c") }

// PoolHeaders returns the headers that PoolSources and its users include: the pool's interface and the kernel ABI.
func PoolHeaders() []toolchain.File {
	return Read("pool.h", "spread.h", "tiles.h", HeaderName)
}

// Vectors returns the check that a process has the vector registers that the code requires.
func Vectors() []toolchain.File { return Read("vectors.h", "vectors.c") }

// ModelSources returns the sources that all packages share beside the kernels: the thread pool, the C interface, and
// the measurement of the machine's limits.
func ModelSources() []toolchain.File {
	return append(append(PoolSources(), CommonSources()...), Read("engine.c", "cpus.c", "peak.c")...)
}

// ModelHeaders returns the headers that ModelSources and the generated part of a package include.
func ModelHeaders() []toolchain.File {
	return append(CommonHeaders(), Read("cpus.h", "peak.h", "pool.h", "spread.h", "tiles.h")...)
}

// CommonSources returns the sources that packages for all kinds of devices share: the package's description and its
// weights.
func CommonSources() []toolchain.File {
	return Read("interface.c", "handle.c", "checks.c", "extents.c", "weights.c", "vectors.c")
}

// CommonHeaders returns the headers that CommonSources and the generated part of a package include.
func CommonHeaders() []toolchain.File {
	return Read("tilth.h", "model.h", "engine.h", "handle.h", "failure.h", "weights.h", "vectors.h", HeaderName)
}

// Interface returns the header of a package's C interface.
func Interface() toolchain.File { return Read("tilth.h")[0] }
