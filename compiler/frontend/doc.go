// Package frontend makes programs of models. It runs the stages, each a package that knows those above it in this list
// only by what they left in the graph:
//
//	importer   reads ONNX's nodes into a graph, folds constants, has composite operators written as others
//	rewrite    passes from a graph to another that computes the same, faster
//	placement  passes that decide how values lie in memory, and which lie in others
//	fusion     cuts the graph into kernels
//	emit       makes the program: a workload for each kernel, equal ones once
//
// Begin to read at import.go; the passes are listed in rewrite/passes.go and placement/passes.go.
package frontend
