// Package frontend compiles models to programs. It runs the following stages. Each is a package that depends on the
// earlier ones only through the graph:
//
//	importer    reads ONNX nodes into a graph, folds constants, expands composite operators
//	rewrite     rewrites graphs into equivalent, faster ones and, last, partitions them into kernels
//	layout      assigns memory layouts, and places values inside others, before the partition
//	programgen  generates the program: a workload per kernel, with equal ones shared
//
// Start with Import; rewrite.Passes and layout.Passes list the passes.
package frontend
