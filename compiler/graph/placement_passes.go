package graph

// placements are the passes that decide where values lie, in this order.
var placements = []pass{
	{"separate-outputs", separateOutputs},
	{"assign-layouts", assignLayouts},
	{"share-memory", shareMemory},
}
