package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Module prints candidates and links them. Every schedule must implement w.
func Module(w *expr.Workload, kernels []backend.Kernel, t *target.Target) (string, error) {
	list := make([]backend.Printed, len(kernels))
	for i, k := range kernels {
		p, err := Print(fmt.Sprintf("k%d", i), k, t)
		if err != nil {
			return "", err
		}
		list[i] = p
	}
	return Link(w, list, t)
}
