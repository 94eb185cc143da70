package frontend

import (
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Stage is the text form of a graph after a stage of its import.
type Stage struct{ Name, Text string }

// Dump imports a model and returns its graph after each stage that changed it, starting with the graph as read. It
// is for debugging passes. Open extents have their maximum. Errors are those of Import.
func Dump(m *onnx.Model, opts Options) (stages []Stage, err error) {
	last := ""
	var extents []program.Extent
	var maxima []int64
	for name, b := range opts.Open {
		extents, maxima = append(extents, program.Extent{Name: name}), append(maxima, b.Max)
	}
	opts = opts.at(extents, maxima)
	_, err = importSeen(op.NewBudget(op.DefaultLimits, m.ConstantBytes()), m, opts, func(name string, g *graph.Graph) {
		if text := g.Text(); text != last {
			stages, last = append(stages, Stage{name, text}), text
		}
	})
	return stages, short(err)
}
