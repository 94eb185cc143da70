package graphfuzz

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Text formats the graph with one node per line.
func (c *Case) Text() string {
	var b strings.Builder
	for _, in := range c.Model.Graph.Inputs {
		fmt.Fprintf(&b, "input %s %v%v\n", in.Name, in.DType, c.Inputs[in.Name].Shape)
	}
	for _, w := range c.Model.Graph.Initializers {
		fmt.Fprintf(&b, "constant %s %v%v\n", w.Name, w.Value.DType, w.Value.Shape)
	}
	for _, n := range c.Model.Graph.Nodes {
		fmt.Fprintf(&b, "%s = %s(%s)", strings.Join(n.Outputs, ", "), n.Op, strings.Join(n.Inputs, ", "))
		for _, a := range n.Attributes {
			fmt.Fprintf(&b, " %s=%v", a.Name, attributeValue(a.Ints, a.Int))
		}
		b.WriteByte('\n')
	}
	for _, o := range c.Model.Graph.Outputs {
		fmt.Fprintf(&b, "output %s\n", o.Name)
	}
	return b.String()
}

func attributeValue(list []int64, one int64) any {
	if list != nil {
		return list
	}
	return one
}

// Save writes model.onnx and inputs.npz to a folder.
func (c *Case) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), c.Model.Encode(), 0o644); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	return filesystem.WriteFile(filepath.Join(dir, "inputs.npz"), func(w io.Writer) error { return npz.Write(w, c.Inputs) })
}
