// Package onnx reads and writes ONNX models: the protobuf messages of the format as plain Go values, with the limits
// that untrusted files ask for. It knows the format only; what operators mean is package op's business.
package onnx
