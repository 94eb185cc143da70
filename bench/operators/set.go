package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// workload is one computation to measure.
type workload struct {
	// name is that of its operator, shape what tells it from the others of that operator, batch the batch size; 0 for
	// tasks of models.
	name, shape string
	batch       int64
	// count is how often a model calls it.
	count int
	*expr.Workload
	// flop is the floating point operations of one execution, a multiplication and an addition counting as two.
	flop float64
}

// family is an operator of the set with its shapes at batch 1.
type family struct {
	name   string
	build  func(batch int64, shape []int64) (*expr.Tensor, float64)
	shapes [][]int64
}

// families are the single operators and subgraphs of the evaluation of Ansor (Zheng et al., OSDI 2020, sections 7.1
// and 7.2), with the four shapes of each that its artifact measures. Shapes of convolutions are spatial extents, input
// and output channels, kernel, stride, padding, dilation and groups.
var families = []family{
	{"C1D", conv(1), [][]int64{{256, 64, 128, 3, 2, 1}, {128, 128, 256, 1, 2, 0}, {64, 256, 256, 5, 1, 2}, {32, 512, 512, 3, 1, 1}}},
	{"C2D", conv(2), [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1}, {7, 7, 512, 512, 3, 1, 1}}},
	{"C3D", conv(3), [][]int64{{16, 224, 224, 3, 64, 7, 2, 3}, {16, 56, 56, 64, 64, 1, 1, 0}, {16, 14, 14, 256, 256, 3, 1, 1}, {16, 7, 7, 512, 512, 3, 1, 1}}},
	{"GMM", matmul, [][]int64{{128, 128, 128}, {512, 32, 512}, {512, 512, 512}, {1024, 1024, 1024}}},
	{"GRP", conv(2), [][]int64{{56, 56, 64, 128, 3, 2, 1, 1, 4}, {56, 56, 64, 64, 1, 1, 0, 1, 4}, {14, 14, 256, 256, 3, 1, 1, 1, 4}, {7, 7, 512, 512, 3, 1, 1, 1, 4}}},
	{"DIL", conv(2), [][]int64{{224, 224, 3, 64, 7, 2, 3, 2}, {56, 56, 64, 64, 1, 1, 0, 2}, {14, 14, 256, 256, 3, 1, 1, 2}, {7, 7, 512, 512, 3, 1, 1, 2}}},
	{"DEP", depthwise, [][]int64{{112, 112, 32, 3, 1, 1}, {112, 112, 64, 3, 2, 1}, {14, 14, 512, 3, 2, 1}, {7, 7, 1024, 3, 1, 1}}},
	{"T2D", transposed, [][]int64{{4, 4, 512, 256, 4, 2, 1}, {8, 8, 256, 128, 4, 2, 1}, {16, 16, 128, 64, 4, 2, 1}, {32, 32, 64, 3, 4, 2, 1}}},
	{"CAP", capsule, [][]int64{{16, 16, 32, 32, 3, 2, 1}, {8, 8, 32, 32, 3, 1, 1}, {16, 16, 8, 16, 3, 2, 1}, {8, 8, 16, 16, 3, 1, 1}}},
	{"NRM", norm, [][]int64{{256, 256}, {512, 512}, {1024, 1024}, {4096, 1024}}},
	{"ConvLayer", convLayer, [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 128, 3, 2, 1}, {28, 28, 128, 256, 1, 2, 0}, {7, 7, 512, 512, 3, 1, 1}}},
	{"TBG", transposedProduct, [][]int64{{128, 12, 64}, {128, 16, 64}, {64, 12, 128}, {128, 12, 128}}},
}

// sets are the families by the name of their set.
var sets = map[string][]family{"ansor": families, "grouped": grouped}

// operators are the workloads of the named families of a set (all when there are none) at each batch size.
func operators(set string, names []string, batches []int64) ([]workload, error) {
	among, ok := sets[set]
	if !ok {
		return nil, noSet(set)
	}
	var list []workload
	for _, f := range among {
		if !wanted(names, f.name) {
			continue
		}
		for _, batch := range batches {
			for _, shape := range f.shapes {
				out, flop := f.build(batch, shape)
				w, err := expr.NewWorkload([]*expr.Tensor{out})
				if err != nil {
					return nil, fmt.Errorf("%s %v: %w", f.name, shape, err)
				}
				list = append(list, workload{name: f.name, shape: shapeText(shape), batch: batch, count: 1, Workload: w.Merge(), flop: flop})
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no operator is named %s; there are %s", strings.Join(names, ", "), familyNames(among))
	}
	return list, nil
}

func noSet(name string) error {
	return fmt.Errorf("-set %s: there are %s", name, strings.Join(slices.Sorted(maps.Keys(sets)), ", "))
}

// has reports whether a row is of one of the families.
func has(families []family, r row) bool {
	return slices.ContainsFunc(families, func(f family) bool { return f.name == r.Operator })
}

// shapeText is a shape as the table has it.
func shapeText(shape []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
}

func wanted(names []string, name string) bool {
	if len(names) == 0 {
		return true
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

func familyNames(list []family) string {
	var names []string
	for _, f := range list {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
