package graph

// pass changes a graph to another that computes the same.
type pass struct {
	name string
	run  func(*graph) error
}

// passes are what a graph goes through between the model's operators and kernels, in this order. Constants are folded
// before; nodes whose results nobody reads are removed behind each.
var passes = []pass{
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
	{"separate-outputs", separateOutputs},
	{"assign-layouts", assignLayouts},
	{"share-memory", shareMemory},
}

// The stages before and behind the passes, as they are called where the graph is shown after each.
const (
	stageBuild     = "build"
	stagePartition = "partition"
)

// observe, if not nil, sees the graph after each stage.
var observe func(stage string, g *graph)
