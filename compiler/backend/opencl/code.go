package opencl

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// code is OpenCL C of kernels. A compiler looks at it first, as the driver's will, so that what does not compile fails
// where it is built; what it makes is not kept.
func code(kernels string, t *target.Target) toolchain.Build {
	text := dialect.OpenCL(kernels)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: dialect.SPIRFlags(t.GPU.Extensions),
		Sources: []toolchain.File{{Name: "kernels.c", Text: text}},
		Finish:  func([]byte) ([]byte, error) { return []byte(text), nil },
	}
}
