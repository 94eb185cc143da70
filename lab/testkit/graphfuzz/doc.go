// Package graphfuzz tests the whole compiler with random models. It draws ONNX graphs, compiles them with random
// legal schedules, and compares the results with the reference evaluation and, if installed, ONNX Runtime.
package graphfuzz
