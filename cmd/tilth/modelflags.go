package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// modelFlags say how to read a model.
type modelFlags struct {
	shapes map[string]string
}

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().StringToStringVar(&f.shapes, "shape", nil, "what the model leaves open, by input or by symbol, e.g. `data=1x3x224x224,batch=1`")
}

// load reads an ONNX file and compiles it to a program.
func (f *modelFlags) load(path string) (*graph.Program, error) {
	options := graph.Options{Shapes: map[string][]int64{}}
	for name, text := range f.shapes {
		shape, err := parseShape(text)
		if err != nil {
			return nil, usagef("--shape %s=%s: %w", name, text, err)
		}
		options.Shapes[name] = shape
	}
	m, err := onnx.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := graph.Import(m, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// parseShape reads extents joined by x.
func parseShape(text string) ([]int64, error) {
	var shape []int64
	for _, part := range strings.Split(text, "x") {
		extent, err := strconv.ParseInt(part, 10, 64)
		if err != nil || extent < 1 {
			return nil, fmt.Errorf("want extents joined by x, such as 1x3x224x224")
		}
		shape = append(shape, extent)
	}
	return shape, nil
}
