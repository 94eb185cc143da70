package opencl

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness returns the build of the program that verifies and times candidates on an OpenCL device. It loads the
// library at run time.
func Harness(t *target.Target) toolchain.Build {
	return cruntime.HarnessFor(t, append(append(DriverSources(), modulefile.Sources()...), sources("harness/src")...))
}

// DriverSources returns the sources that call OpenCL: declarations of the interface, and the loader.
func DriverSources() []toolchain.File { return sources("driver/src") }

// query returns a program with the given main file that queries OpenCL. Its first argument is the number of the
// device.
func query(tc *toolchain.Toolchain, host *target.Target, dir, main string) modulefile.Query {
	return modulefile.Query{Toolchain: tc, Host: host, Dir: dir, Files: append(DriverSources(), sources("describe/src")...),
		Parts: []string{"opencl.c", "rates.c", main}, Library: library(), Cache: "POCL_CACHE_DIR"}
}

const (
	// farBytes is a size far beyond a cache.
	farBytes = 256 << 20
	// minCopied is the minimum size in bytes for a measurable copy.
	minCopied = 64 << 10
)

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return modulefile.Files(files, folder) }
