package frontend

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend/placement"
	"github.com/tilth-dev/tilth/compiler/frontend/rewrite"
	"github.com/tilth-dev/tilth/compiler/graph"
)

// passes are what a graph goes through between the model's operators and kernels, in this order. Constants are folded
// before; nodes whose results nobody reads are removed behind each.
var passes = slices.Concat(rewrite.Passes, placement.Passes)

// passes are those of a model that is imported with the options.
func (o Options) passes() []graph.Pass {
	list := passes
	if o.Storage.Bytes != array.Invalid {
		list = slices.Insert(slices.Clone(list), 0, rewrite.ShiftBytes(o.Storage.Bytes))
	}
	if o.Storage.WeightBits > 0 {
		list = slices.Insert(slices.Clone(list), len(list)-len(placement.Passes), rewrite.QuantiseWeights(o.Storage, o.Quantised))
	}
	if o.Storage.RowBytes > 0 {
		list = slices.Insert(slices.Clone(list), len(list)-len(placement.Passes), rewrite.AlignRows(o.Storage.RowBytes, o.Storage.ElementBytes()))
	}
	if o.Storage.Type != array.Invalid {
		list = append(slices.Clone(list), placement.Narrow(o.Storage))
	}
	return list
}

// The stages before and behind the passes, as they are called where the graph is shown after each.
const (
	stageBuild     = "build"
	stagePartition = "partition"
)
