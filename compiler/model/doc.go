// Package model builds well-known networks as ONNX models with random weights, for tests, examples and measurements
// without downloads. The same seed gives the same weights; they are scaled so that activations stay finite. The
// operators are those that frameworks export. Begin with networks.go.
package model
