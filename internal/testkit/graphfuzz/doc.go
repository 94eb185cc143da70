// Package graphfuzz tests the whole compiler with random models: it draws ONNX graphs, compiles them with random legal
// schedules, and compares what they compute with the programs' meaning, and with ONNX Runtime where it is there.
package graphfuzz
