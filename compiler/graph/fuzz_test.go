package graph

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// FuzzImport checks that no model makes Import panic, and that what it accepts refers to itself correctly.
func FuzzImport(f *testing.F) {
	f.Add(newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 3, 3).constant("b", 8).
		node("c = Conv x w b", same3x3).node("s = Add c x").node("y = Relu s").output("y").Encode())
	f.Add(newSketch().input("x", 2, 3).known("k", array.FromInt64([]int64{3, 2}, 2)).
		node("r = Reshape x k").node("t = Transpose r").node("y = Softmax t").output("y").Encode())
	models, err := filepath.Glob(filepath.Join(backendCases, "*", "model.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range models {
		if data, err := os.ReadFile(path); err == nil && len(data) < 2000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Read(data)
		if err != nil {
			return
		}
		p, err := Import(m, Options{})
		if err != nil {
			return
		}
		checkProgram(t, p)
	})
}

// checkProgram checks that every value is there before it is read, and that arguments fit the workloads.
func checkProgram(t *testing.T, p *Program) {
	t.Helper()
	ready := map[int]bool{}
	for k, v := range p.Values {
		ready[k] = v.Data != nil
	}
	for _, k := range p.Inputs {
		ready[k] = true
	}
	for _, c := range p.Calls {
		args := p.Tasks[c.Task].Workload.Args()
		outputs := len(p.Tasks[c.Task].Workload.Outputs)
		for k, v := range c.Args {
			value := p.Values[v]
			if args[k].DType != value.DType || array.Elements(args[k].Shape) != array.Elements(value.Shape) {
				t.Errorf("call %q: argument %d is %v%v where %v%v is due", c.Name, k, value.DType, value.Shape, args[k].DType, args[k].Shape)
			}
			if k >= len(args)-outputs {
				ready[v] = true
			} else if !ready[p.Root(v)] {
				t.Errorf("call %q reads %q before it is computed", c.Name, value.Name)
			}
		}
	}
	for _, k := range p.Outputs {
		if !ready[p.Root(k)] {
			t.Errorf("output %q is not computed", p.Values[k].Name)
		}
	}
}
