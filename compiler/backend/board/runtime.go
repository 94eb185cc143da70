package board

import (
	_ "embed" // for the library

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen/abi"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// library is what kernels and compilers call of a C library.
//
//go:embed src/libc.c
var library string

// Runtime implements backend.Programs. There is no more than what a C library would have.
func (Backend) Runtime(*target.Target) backend.Runtime {
	return backend.Runtime{
		Sources: []toolchain.File{{Name: "libc.c", Text: library}},
		Headers: []toolchain.File{{Name: abi.HeaderName, Text: abi.Header}},
	}
}
