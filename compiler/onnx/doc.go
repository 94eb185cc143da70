// Package onnx reads and writes ONNX models: the protobuf messages of the format as plain Go values, within the limits
// that untrusted files need. It knows only the format; package op knows what operators mean. Begin with Model and
// Read.
package onnx
