package rewrite

import "github.com/tilth-dev/tilth/compiler/graph"

// Passes lists the passes over operators in order.
var Passes = []graph.Pass{
	{Name: "merge-computed", Run: mergeComputed},
	{Name: "nest-concats", Run: nestConcats},
	{Name: "fold-pads", Run: foldPads},
	{Name: "fold-batch-norms", Run: foldBatchNorms},
	{Name: "fuse-layer-norms", Run: fuseLayerNorms},
	{Name: "slice-gathers", Run: sliceGathers},
	{Name: "lift-gemms", Run: liftGemms},
	{Name: "fuse-attention", Run: fuseAttention},
	{Name: "hoist-scales", Run: hoistScales},
	{Name: "share-top-k", Run: shareTopK},
	{Name: "fuse-horizontally", Run: fuseHorizontally},
	{Name: "quantise-parts", Run: quantiseParts},
	{Name: "fold-quantisations", Run: foldQuantisations},
	{Name: "split-dequantised", Run: splitDequantised},
}
