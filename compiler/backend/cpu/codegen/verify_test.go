package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/ir"
)

// All tests of this package verify each program after each step.
func init() {
	observe = func(step string, f *ir.Func) {
		if err := f.Verify(); err != nil {
			panic(fmt.Sprintf("after %s: %v\n%s", step, err, f.Text()))
		}
	}
}
