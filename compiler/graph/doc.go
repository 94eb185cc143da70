// Package graph turns a model into the program that a package runs: it reads the operators into a graph of typed
// values, simplifies it, decides where values lie in memory, and cuts it into kernels.
package graph
