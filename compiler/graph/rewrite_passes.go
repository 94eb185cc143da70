package graph

// rewrites are the passes over operators, in this order.
var rewrites = []pass{
	{"nest-concats", nestConcats},
	{"fold-pads", foldPads},
	{"fold-batch-norms", foldBatchNorms},
	{"fuse-layer-norms", fuseLayerNorms},
	{"slice-gathers", sliceGathers},
	{"lift-gemms", liftGemms},
	{"fuse-attention", fuseAttention},
	{"hoist-scales", hoistScales},
	{"share-top-k", shareTopK},
	{"fuse-horizontally", fuseHorizontally},
	{"split-dequantised", splitDequantised},
}
