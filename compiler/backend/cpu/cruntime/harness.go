package cruntime

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

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
