// Package modelzoo builds well-known networks as ONNX models with random weights, for tests, examples and measurements
// without downloads. Equal seeds give equal weights, scaled so that activations stay finite. The operators are those
// that frameworks export. Start with Build; networks.go lists the models.
package modelzoo
