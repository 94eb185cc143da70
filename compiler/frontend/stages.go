package frontend

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/frontend/placement"
	"github.com/tilth-dev/tilth/compiler/frontend/rewrite"
)

// passes are what a graph goes through between the model's operators and kernels, in this order. Constants are folded
// before; nodes whose results nobody reads are removed behind each.
var passes = slices.Concat(rewrite.Passes, placement.Passes)

// The stages before and behind the passes, as they are called where the graph is shown after each.
const (
	stageBuild     = "build"
	stagePartition = "partition"
)
