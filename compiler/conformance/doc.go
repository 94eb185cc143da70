// Package conformance runs ONNX backend test cases through the compiler: each model is imported, compiled with default
// schedules by the real C compiler, loaded and run, and its outputs are compared with the expected ones.
//
// Cases run in batches, in processes of their own: a batch is compiled as one package, since starting compilers would
// take most of the time, and a case that crashes or hangs takes down its process only. The cases of a batch that ended
// so, or that does not compile, run again one by one, so that the culprit costs itself and no other.
package conformance
