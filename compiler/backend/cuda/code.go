package cuda

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/image"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// code is what makes PTX of kernels and, where there is an assembler for the card, a cubin of that.
func code(kernels string, t *target.Target) toolchain.Build {
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: dialect.NVPTXFlags(t.GPU.Arch),
		Sources: []toolchain.File{{Name: "kernels.c", Text: dialect.NVPTX() + kernels}},
		Finish: func(ptx []byte) ([]byte, error) {
			bound, err := dialect.BoundThreads(string(ptx))
			return []byte(bound), err
		},
		Assemble: []string{"-arch=" + t.GPU.Arch},
	}
}

// Module is what to compile for candidates, all of w and t.
func Module(w *expr.Workload, candidates []*image.Printed, t *target.Target) toolchain.Build {
	return image.Module(w, candidates, t, code)
}
