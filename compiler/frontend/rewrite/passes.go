package rewrite

import (
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Passes lists the passes over operators in order.
var Passes = []graph.Pass{
	{Name: "merge-computed", Run: op.Catching(mergeComputed)},
	{Name: "nest-concats", Run: op.Catching(nestConcats)},
	{Name: "fold-pads", Run: op.Catching(foldPads)},
	{Name: "fold-batch-norms", Run: op.Catching(foldBatchNorms)},
	{Name: "fuse-layer-norms", Run: op.Catching(fuseLayerNorms)},
	{Name: "slice-gathers", Run: op.Catching(sliceGathers)},
	{Name: "lift-gemms", Run: op.Catching(liftGemms)},
	{Name: "fuse-attention", Run: op.Catching(fuseAttention)},
	{Name: "hoist-scales", Run: op.Catching(hoistScales)},
	{Name: "share-top-k", Run: op.Catching(shareTopK)},
	{Name: "fuse-horizontally", Run: op.Catching(fuseHorizontally)},
	{Name: "quantise-parts", Run: op.Catching(quantiseParts)},
	{Name: "fold-quantisations", Run: op.Catching(foldQuantisations)},
	{Name: "split-dequantised", Run: op.Catching(splitDequantised)},
}
