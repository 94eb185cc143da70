package cruntime

import (
	"embed"
	_ "embed" // for the header
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
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

// HeaderName is the name under which C sources include the header that generated kernels, the harness and compiled
// packages share.
const HeaderName = "tilth_kernel.h"

// Header is the text of the header.
//
//go:embed src/tilth_kernel.h
var Header string

// types lists the types in the order of the header's numbers, which start at 1.
var types = []array.DType{
	array.Float32, array.Float64, array.Float16, array.BFloat16, array.Int8, array.Int16, array.Int32, array.Int64,
	array.Uint8, array.Uint16, array.Uint32, array.Uint64, array.Bool,
}

// Type returns the header's number of a type.
func Type(d array.DType) int { return slices.Index(types, d) + 1 }

//go:embed harness/*
var harness embed.FS

// noDevice is the source of a harness whose candidates run in its own process.
const noDevice = "device_none.c"

// Harness returns the build of the harness, which verifies and times kernels, for a target whose candidates run in
// the harness's process.
func Harness(t *target.Target) toolchain.Build {
	return buildHarness(t, append(PoolHeaders(), PoolSources()...), func(string) bool { return true })
}

// HarnessFor returns the build of the harness for candidates that run on a device, with the sources that implement
// device.h.
func HarnessFor(t *target.Target, device []toolchain.File) toolchain.Build {
	parts := append(PoolHeaders(), PoolSources()...)
	return buildHarness(t, append(parts, device...), func(name string) bool { return name != noDevice })
}

// Elements returns the sources that fill arguments from a seed, for devices that do so themselves.
func Elements() []toolchain.File {
	return []toolchain.File{harnessSource("element.h"), harnessSource("element.c")}
}

func harnessSource(name string) toolchain.File {
	text, err := harness.ReadFile("harness/" + name)
	if err != nil {
		panic(err) // unreachable: the file is embedded
	}
	return toolchain.File{Name: name, Text: string(text)}
}

// buildHarness adds the harness's sources for which wanted returns true. They form a single translation unit, because
// starting a compiler takes longer than compiling any of them.
func buildHarness(t *target.Target, parts []toolchain.File, wanted func(name string) bool) toolchain.Build {
	parts = append(parts, Vectors()...)
	entries, err := harness.ReadDir("harness")
	if err != nil {
		panic(err) // unreachable: the files are embedded
	}
	for _, entry := range entries {
		if !wanted(entry.Name()) {
			continue
		}
		parts = append(parts, harnessSource(entry.Name()))
	}
	unit := "#define _GNU_SOURCE\n"
	for _, part := range parts {
		if strings.HasSuffix(part.Name, ".c") {
			unit += "#include \"" + part.Name + "\"\n"
		}
	}
	return toolchain.Build{Target: t, Form: toolchain.Executable, Headers: parts, Sources: []toolchain.File{{Name: "unit.c", Text: unit}}}
}
