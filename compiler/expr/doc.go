// Package expr describes computations on tensors: scalar expressions over axes and loads, tensors computed from them,
// and workloads, which are small DAGs of such tensors with a canonical text and a digest.
//
// The vocabulary follows tensor expression languages such as Halide and TVM's te: a tensor is a function of its
// spatial axes, optionally combined over reduction axes.
package expr
