// Package opcases provides test cases of single operators with the results of ONNX Runtime.
package opcases
