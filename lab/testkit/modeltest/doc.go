// Package modeltest provides small models for tests of the front end, with one line per node. It checks that programs
// compute what the model means and read nothing before it is written. Start with model.go. RecordedCases returns test
// cases of single operators with the results of ONNX Runtime.
package modeltest
