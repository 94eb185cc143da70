package board

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed harness/src/* image/src/*
var files embed.FS

// named returns the files whose names end in end.
func named(list []toolchain.File, end string) (some []toolchain.File) {
	for _, f := range list {
		if strings.HasSuffix(f.Name, end) {
			some = append(some, f)
		}
	}
	return some
}

// host returns the target of the machine that a board is linked to. The builder has the same architecture.
func host() (*target.Target, error) { return target.Host(1) }

// LinkDescriptor is the file descriptor of the link to a board in the harness.
const LinkDescriptor = 4

// Device implements backend.Programs. The board is at the other end of a link.
func (Backend) Device(*target.Target) *backend.Device {
	return &backend.Device{Number: LinkDescriptor, Link: true}
}

// Harness implements backend.Programs. The harness runs on the host and sends candidates to the board.
func (Backend) Harness(t *target.Target) toolchain.Build {
	on, err := host()
	if err != nil {
		on = t // compilation reports the error
	}
	parts := append(append(modulefile.Files(files, "harness/src"), boardmonitor.Protocol()), named(modulefile.Sources(), "fence.h")...)
	return cruntime.HarnessFor(on, append(parts, named(modulefile.Files(files, "image/src"), ".h")...))
}

// Reference implements backend.Code. Candidates are verified against results computed on the host.
func (Backend) Reference(w *expr.Workload, _ *target.Target) (toolchain.Build, error) {
	on, err := host()
	if err != nil {
		return toolchain.Build{}, err
	}
	return cpu.Backend{}.Reference(w, on)
}

// Module implements backend.Code. It returns the build of an ELF file that the harness relocates into the board's
// free memory. Its code must address constants relative to itself; the code of packages need not.
func (Backend) Module(w *expr.Workload, kernels []backend.Printed, t *target.Target) (toolchain.Build, error) {
	b, err := cpu.Backend{}.Module(w, kernels, t)
	if err != nil {
		return b, err
	}
	b.Form = toolchain.Bare
	b.Headers = append(b.Headers, toolchain.File{Name: cruntime.HeaderName, Text: cruntime.Header})
	parts := append(append(modulefile.Files(files, "image/src"), cruntime.Elements()...), named(Backend{}.Runtime(t).Sources, "libc.c")...)
	b.Headers, b.Sources = append(b.Headers, named(parts, ".h")...), append(b.Sources, named(parts, ".c")...)
	b.Flags = append(b.Flags, "-fpie", "-DTILTH_NO_DOUBLES")
	if t.Arch() == target.RISCV32 {
		b.Flags = append(b.Flags, "-mcmodel=medany")
	}
	b.LinkFlags = []string{"-pie", "--no-dynamic-linker", "-e", "tilth_board_table", "--gc-sections", "-z", "norelro", "-z", "notext", "--build-id=none", "-s"}
	return b, nil
}
