package opencl

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// code returns the OpenCL C of kernels. A compiler checks it first, so that errors appear at build time. Its output
// is discarded.
func code(kernels string, t *target.Target) toolchain.Build {
	text := macros.OpenCL(kernels)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: macros.SPIRFlags(t.GPU.Extensions),
		Sources: []toolchain.File{{Name: "kernels.c", Text: text}},
		Finish:  func([]byte) ([]byte, error) { return []byte(text), nil },
	}
}
