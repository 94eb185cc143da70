package board

import (
	_ "embed" // for the library

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// library implements the part of the C library that kernels and compilers call.
//
//go:embed src/libc.c
var library string

// Runtime implements backend.Programs. It adds only what a C library would provide.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return backend.Runtime{
		Sources: []toolchain.File{{Name: "libc.c", Text: library}},
		Headers: []toolchain.File{{Name: cruntime.HeaderName, Text: cruntime.Header}},
	}
}
