// Package conformance runs ONNX backend test cases through the compiler: each model is imported, compiled with default
// schedules by the real C compiler, loaded and run, and its outputs are compared with the expected ones.
//
// Cases run in batches, in processes of their own. A batch is compiled as one package, since starting compilers would
// take most of the time. The cases of a batch that crashes or does not compile run again one by one, so that the
// culprit affects no other. Begin with Runner.
package conformance
