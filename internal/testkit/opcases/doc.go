// Package opcases has applications of single operators with the results that ONNX Runtime gives, for tests of
// everything between a model and the kernels compiled from it.
package opcases
