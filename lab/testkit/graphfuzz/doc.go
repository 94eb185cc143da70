// Package graphfuzz tests the whole compiler with random models: it draws ONNX graphs, compiles them with random legal
// schedules, and compares their results with the programs' evaluation, and with ONNX Runtime where it is installed.
package graphfuzz
