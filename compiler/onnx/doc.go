// Package onnx reads and writes ONNX models: the protobuf messages of the format as plain Go values, within limits
// for untrusted files. It covers the format only; package op defines the operators. Start with Model and Read.
package onnx
