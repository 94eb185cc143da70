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

// Harness returns the build of the program that verifies and times candidates on a GPU. It loads the driver's library
// at run time.
func Harness(t *target.Target) toolchain.Build {
	return harness.BuildFor(t, slices.Concat(sources("driver/src"), image.Sources(), image.Card(), sources("harness/src")))
}

// DriverSources returns the sources that call the driver: declarations of the interface, the loader, and the
// construction of tensor maps.
func DriverSources() []toolchain.File { return append(sources("driver/src"), image.Boxes()...) }

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return image.Files(files, folder) }
