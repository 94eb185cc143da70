package cuda

import (
	"embed"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/harness"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/image"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness is what to compile for the program that verifies and times candidates on a GPU. It finds the driver's
// library when it runs.
func Harness(t *target.Target) toolchain.Build {
	return harness.BuildFor(t, slices.Concat(sources("driver/src"), image.Sources(), image.Card(), sources("harness/src")))
}

// DriverSources are what calls the driver: the part of its interface that is used, what finds it, and what it makes
// tensor maps of.
func DriverSources() []toolchain.File { return append(sources("driver/src"), image.Boxes()...) }

// sources are the files of an embedded folder.
func sources(folder string) []toolchain.File { return image.Files(files, folder) }
