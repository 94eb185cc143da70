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

// Harness is what to compile for the program that verifies and times candidates on an OpenCL device. It finds the
// library when it runs.
func Harness(t *target.Target) toolchain.Build {
	return harness.BuildFor(t, append(append(DriverSources(), image.Sources()...), sources("harness/src")...))
}

// DriverSources are what calls OpenCL: the part of its interface that is used, and what finds it.
func DriverSources() []toolchain.File { return sources("driver/src") }

// sources are the files of an embedded folder.
func sources(folder string) []toolchain.File { return image.Files(files, folder) }
