package cuda

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/dialect"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/image"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// code is what makes PTX of kernels and, where there is an assembler for the card, a cubin of that. Neither is for the
// card's chip alone unless the kernels have instructions that only that has.
func code(kernels string, t *target.Target) toolchain.Build {
	arch := dialect.NVPTXArch(kernels, t.GPU.Arch)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: dialect.NVPTXFlags(arch),
		Sources: []toolchain.File{{Name: "kernels.c", Text: dialect.NVPTX() + kernels}},
		Finish: func(ptx []byte) ([]byte, error) {
			bound, err := dialect.BoundThreads(string(ptx))
			return []byte(bound), err
		},
		Assemble: []string{"-arch=" + arch},
	}
}

// Module is what to compile for candidates, all of w and t.
func Module(w *expr.Workload, candidates []*image.Printed, t *target.Target) toolchain.Build {
	return image.Module(w, candidates, t, code)
}
