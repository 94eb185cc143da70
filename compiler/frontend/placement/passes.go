package placement

import "github.com/tilth-dev/tilth/compiler/graph"

// Passes decide where values lie, in this order.
var Passes = []graph.Pass{
	{Name: "separate-outputs", Run: separateOutputs},
	{Name: "assign-layouts", Run: assignLayouts},
	{Name: "share-memory", Run: shareMemory},
}
