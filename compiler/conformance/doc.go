// Package conformance runs ONNX backend test cases through the compiler: each model is imported, compiled with
// default schedules by the real C compiler, loaded and run, and its outputs are compared with the expected ones.
//
// Cases run in batches, in separate processes. A batch is compiled as one package, since starting compilers would
// take most of the time. If a batch crashes or does not compile, its cases are rerun individually to isolate the
// failure. Start with Runner.
package conformance
