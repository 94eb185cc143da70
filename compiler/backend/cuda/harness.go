package cuda

import (
	"embed"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed describe/src/* driver/src/* harness/src/* runtime/src/*
var files embed.FS

// Harness returns the build of the program that verifies and times candidates on a GPU. It loads the driver's library
// at run time.
func Harness(t *target.Target) toolchain.Build {
	return cruntime.HarnessFor(t, slices.Concat(sources("driver/src"), modulefile.Sources(), modulefile.Card(), sources("harness/src")))
}

// DriverSources returns the sources that call the driver: declarations of the interface, the loader, and the
// construction of tensor maps.
func DriverSources() []toolchain.File { return append(sources("driver/src"), modulefile.Boxes()...) }

// query returns a program of the given sources that queries the driver. visible selects the devices that the driver
// shows to it; empty for all.
func query(tc *toolchain.Toolchain, host *target.Target, dir, visible string, parts ...string) modulefile.Query {
	q := modulefile.Query{Toolchain: tc, Host: host, Dir: dir, Files: append(DriverSources(), sources("describe/src")...),
		Parts: append([]string{"driver.c"}, parts...), Library: driver()}
	if visible != "" {
		q.Env = []string{VisibleVariable + "=" + visible}
	}
	return q
}

// farBytes returns a size far beyond a GPU's cache.
func farBytes(g *target.GPU) int64 { return 4 * g.L2Bytes }

// sources returns the files of an embedded folder.
func sources(folder string) []toolchain.File { return modulefile.Files(files, folder) }
