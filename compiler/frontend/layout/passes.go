package layout

import "github.com/tilth-dev/tilth/compiler/graph"

// Passes lists the placement passes in order.
var Passes = []graph.Pass{
	{Name: "separate-outputs", Run: separateOutputs},
	{Name: "assign-layouts", Run: assignLayouts},
	{Name: "share-memory", Run: shareMemory},
}
