// Package program has models as programs: values in memory, and calls of kernels on them. It is what the front end
// makes of a model and what packages are compiled from. It knows workloads (package expr), and nothing of operators or
// devices. Begin to read at program.go.
package program
