package frontend

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend/layout"
	"github.com/tilth-dev/tilth/compiler/frontend/rewrite"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// passes lists the passes between operators and kernels, in order. Constants are folded before; dead nodes are
// removed after each pass.
var passes = slices.Concat(rewrite.Passes, layout.Passes)

// passes returns the passes for a model with these options.
func (o Options) passes() []graph.Pass {
	list := passes
	if o.Storage.Bytes != array.Invalid {
		list = slices.Insert(slices.Clone(list), 0, rewrite.ShiftBytes(o.Storage.Bytes))
	}
	if o.Storage.WeightBits > 0 {
		list = slices.Insert(slices.Clone(list), len(list)-len(layout.Passes), rewrite.QuantiseWeights(o.Storage, o.Quantised))
	}
	if o.Storage.RowBytes > 0 {
		list = slices.Insert(slices.Clone(list), len(list)-len(layout.Passes), rewrite.AlignRows(o.Storage.RowBytes, o.Storage.ElementBytes()))
	}
	if o.Storage.Type != array.Invalid {
		list = append(slices.Clone(list), layout.Narrow(o.Storage))
	}
	return list
}

// Names of the stages before and after the passes in dumps.
const (
	stageBuild     = "build"
	stagePartition = "partition"
)

// Stage is the text form of a graph after a stage of its import.
type Stage struct{ Name, Text string }

// Dump imports a model and returns its graph after each stage that changed it, starting with the graph as read. It
// is for debugging passes. Errors are those of Import.
func Dump(m *onnx.Model, opts Options) (stages []Stage, err error) {
	last := ""
	_, err = importSeen(newBudget(m), m, opts, func(name string, g *graph.Graph) {
		if text := g.Text(); text != last {
			stages, last = append(stages, Stage{name, text}), text
		}
	})
	return stages, short(err)
}
