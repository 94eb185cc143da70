package frontend_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// FuzzImport checks that no model makes Import panic, and that what it accepts refers to itself correctly.
func FuzzImport(f *testing.F) {
	f.Add(modeltest.New().Input("x", 1, 8, 5, 5).Constant("w", 8, 8, 3, 3).Constant("b", 8).
		Node("c = Conv x w b", modeltest.Same3x3).Node("s = Add c x").Node("y = Relu s").Output("y").Encode())
	f.Add(modeltest.New().Input("x", 2, 3).Known("k", array.FromInt64([]int64{3, 2}, 2)).
		Node("r = Reshape x k").Node("t = Transpose r").Node("y = Softmax t").Output("y").Encode())
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
		p, err := frontend.Import(m, frontend.Options{Verify: true})
		if err != nil {
			return
		}
		modeltest.Check(t, p)
	})
}
