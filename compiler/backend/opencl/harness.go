package opencl

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/harness"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/image"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness returns the build of the program that verifies and times candidates on an OpenCL device. It loads the
// library at run time.
func Harness(t *target.Target) toolchain.Build {
	return harness.BuildFor(t, append(append(DriverSources(), image.Sources()...), sources("harness/src")...))
}

// DriverSources returns the sources that call OpenCL: declarations of the interface, and the loader.
func DriverSources() []toolchain.File { return sources("driver/src") }

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return image.Files(files, folder) }
