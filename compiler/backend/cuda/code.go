package cuda

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/macros"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// code returns the build that compiles kernels to PTX and, if an assembler for the GPU is available, to a cubin. The
// code is specific to the chip only if the kernels use its architecture-specific instructions.
func code(kernels string, t *target.Target) toolchain.Build {
	arch := macros.NVPTXArch(kernels, t.GPU.Arch)
	return toolchain.Build{
		Target: t, Form: toolchain.Device, Flags: macros.NVPTXFlags(arch),
		Sources: []toolchain.File{{Name: "kernels.c", Text: macros.NVPTX() + kernels}},
		Finish: func(ptx []byte) ([]byte, error) {
			bound, err := macros.BoundThreads(string(ptx))
			return []byte(bound), err
		},
		Assemble: []string{"-arch=" + arch},
	}
}

// Module returns the build of candidates, all of the same workload and target.
func Module(w *expr.Workload, candidates []*modulefile.Printed, t *target.Target) toolchain.Build {
	return modulefile.Module(w, candidates, t, code)
}
