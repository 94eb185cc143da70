// Package model builds well-known networks as ONNX models with made-up weights, for tests, examples and measurements
// that need no download. The weights are random but the same for the same seed, and scaled so that activations stay
// finite. The operators are those that frameworks export.
package model
