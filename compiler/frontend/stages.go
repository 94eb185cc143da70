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
	if o.Storage.Type == array.Invalid {
		return passes
	}
	return append(slices.Clone(passes), placement.Narrow(o.Storage))
}

// The stages before and behind the passes, as they are called where the graph is shown after each.
const (
	stageBuild     = "build"
	stagePartition = "partition"
)
