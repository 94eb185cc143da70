package operators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// workload is a computation to measure.
type workload struct {
	// name is the operator, and shape identifies the workload within it.
	name, shape string
	batch       int64
	*expr.Workload
	// flop counts the floating point operations of one execution. A multiply-add counts as two.
	flop float64
	// question is the request to libraries, or empty.
	question string
	unrated  bool
	// numerics restricts the schedules.
	numerics schedule.Numerics
}

func (w workload) title() string { return w.name + " (" + w.shape + ")" }

// family is an operator of the set with its shapes at batch 1.
type family struct {
	name   string
	build  func(batch int64, shape []int64) (*expr.Tensor, float64)
	shapes [][]int64
	// question returns the request to libraries in the form that peer.go describes. It is nil for operators that
	// libraries lack.
	question func(batch int64, shape []int64) string
	// unrated marks operators in types without a measured peak rate.
	unrated bool
	// numerics restricts the schedules; the zero value means default numerics.
	numerics schedule.Numerics
}

// families are the operators and subgraphs of Ansor's evaluation (Zheng et al., OSDI 2020, sections 7.1 and 7.2),
// with the four shapes of each in its artifact. Shapes of convolutions are spatial extents, input and output
// channels, kernel, stride, padding, dilation and groups.
var families = []family{
	{name: "C1D", build: conv(1), shapes: [][]int64{{256, 64, 128, 3, 2, 1}, {128, 128, 256, 1, 2, 0}, {64, 256, 256, 5, 1, 2}, {32, 512, 512, 3, 1, 1}}},
	{name: "C2D", build: conv(2), shapes: [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 1, 1, 0}, {14, 14, 256, 256, 3, 1, 1}, {7, 7, 512, 512, 3, 1, 1}}},
	{name: "C3D", build: conv(3), shapes: [][]int64{{16, 224, 224, 3, 64, 7, 2, 3}, {16, 56, 56, 64, 64, 1, 1, 0}, {16, 14, 14, 256, 256, 3, 1, 1}, {16, 7, 7, 512, 512, 3, 1, 1}}},
	{name: "GMM", build: matmul, shapes: [][]int64{{128, 128, 128}, {512, 32, 512}, {512, 512, 512}, {1024, 1024, 1024}}},
	{name: "GRP", build: conv(2), shapes: [][]int64{{56, 56, 64, 128, 3, 2, 1, 1, 4}, {56, 56, 64, 64, 1, 1, 0, 1, 4}, {14, 14, 256, 256, 3, 1, 1, 1, 4}, {7, 7, 512, 512, 3, 1, 1, 1, 4}}},
	{name: "DIL", build: conv(2), shapes: [][]int64{{224, 224, 3, 64, 7, 2, 3, 2}, {56, 56, 64, 64, 1, 1, 0, 2}, {14, 14, 256, 256, 3, 1, 1, 2}, {7, 7, 512, 512, 3, 1, 1, 2}}},
	{name: "DEP", build: depthwise, shapes: [][]int64{{112, 112, 32, 3, 1, 1}, {112, 112, 64, 3, 2, 1}, {14, 14, 512, 3, 2, 1}, {7, 7, 1024, 3, 1, 1}}},
	{name: "T2D", build: transposed, shapes: [][]int64{{4, 4, 512, 256, 4, 2, 1}, {8, 8, 256, 128, 4, 2, 1}, {16, 16, 128, 64, 4, 2, 1}, {32, 32, 64, 3, 4, 2, 1}}},
	{name: "CAP", build: capsule, shapes: [][]int64{{16, 16, 32, 32, 3, 2, 1}, {8, 8, 32, 32, 3, 1, 1}, {16, 16, 8, 16, 3, 2, 1}, {8, 8, 16, 16, 3, 1, 1}}},
	{name: "NRM", build: norm, shapes: [][]int64{{256, 256}, {512, 512}, {1024, 1024}, {4096, 1024}}},
	{name: "ConvLayer", build: convLayer, shapes: [][]int64{{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 128, 3, 2, 1}, {28, 28, 128, 256, 1, 2, 0}, {7, 7, 512, 512, 3, 1, 1}}},
	{name: "TBG", build: transposedProduct, shapes: [][]int64{{128, 12, 64}, {128, 16, 64}, {64, 12, 128}, {128, 12, 128}}},
}

// sets maps names of sets to families.
var sets = map[string][]family{"ansor": families, "grouped": grouped, "library": library, "blocks": blocks}

// operators returns the workloads of the named families (default all) of comma-separated sets, at each batch size.
func operators(set string, names []string, batches []int64) ([]workload, error) {
	var among []family
	for _, name := range strings.Split(set, ",") {
		families, ok := sets[name]
		if !ok {
			return nil, noSet(name)
		}
		among = append(among, families...)
	}
	var list []workload
	for _, f := range among {
		if names != nil && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, f.name) }) {
			continue
		}
		for _, batch := range batches {
			for _, shape := range f.shapes {
				out, flop := f.build(batch, shape)
				w, err := expr.NewWorkload([]*expr.Tensor{out})
				if err != nil {
					return nil, fmt.Errorf("%s %v: %w", f.name, shape, err)
				}
				one := workload{name: f.name, shape: shapeText(shape), batch: batch, Workload: w.Merge(), flop: flop,
					unrated: f.unrated, numerics: max(schedule.Default, f.numerics)}
				if f.question != nil {
					one.question = f.question(batch, shape)
				}
				list = append(list, one)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no operator is named %s; there are %s", strings.Join(names, ", "), familyNames(among))
	}
	return list, nil
}

func noSet(name string) error {
	return fmt.Errorf("-set %s: there are %s", name, setNames())
}

func setNames() string { return strings.Join(slices.Sorted(maps.Keys(sets)), ", ") }

// isOf reports whether a row belongs to a set.
func isOf(r row, set string) bool {
	return slices.ContainsFunc(sets[set], func(f family) bool { return f.name == r.Operator })
}

// shapeText formats a shape for the table.
func shapeText(shape []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
}

func familyNames(list []family) string {
	var names []string
	for _, f := range list {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
