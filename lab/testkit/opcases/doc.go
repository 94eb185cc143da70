// Package opcases has single operators with the results of ONNX Runtime, for tests of everything between a model and
// its kernels.
package opcases
