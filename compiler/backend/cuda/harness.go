package cuda

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/harness"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness is what to compile for the program that verifies and times candidates on a GPU. It finds the driver's
// library when it runs.
func Harness(t *target.Target) toolchain.Build {
	return harness.BuildFor(t, append(sources("driver/src"), sources("harness/src")...))
}

// DriverSources are what calls the driver: the part of its interface that is used, and what finds it.
func DriverSources() []toolchain.File { return sources("driver/src") }

// sources are the files of an embedded folder.
func sources(folder string) (list []toolchain.File) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic(err) // embedded
	}
	for _, entry := range entries {
		text, err := files.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic(err) // embedded
		}
		list = append(list, toolchain.File{Name: entry.Name(), Text: string(text)})
	}
	return list
}
