// Package models compares compiled models with ONNX Runtime and prints tables of the results in Markdown.
// lab/bench/run.sh builds the laboratory as .tools/bench/lab:
//
//	lab models [FLAGS] [MODEL[:INPUTS.npz] ...]    tune, compile and compare models; resume an earlier run
//	lab models FORM [FLAGS] [MODEL ...]            decoding, fast or quantised: without tuning, beside other packages of ours
//	lab models table [-of FORM]                    print the tables of all results
//	lab models table -kernels 5                    add the slowest kernels of each result
//	lab models trials LOG.jsonl                    print what a trial of tuning cost
//
// A ratio above 1 means that the package is faster. "Limit by FLOP" counts the operations of direct sums at the
// machine's rate of multiply-adds, which Winograd's algorithm may beat; "limit by bytes" counts weights at the
// memory's rate, which models smaller than the last cache may beat. "Memory" is the growth of peak resident memory
// by loading and running a model. A kernel's limit is the larger of its operations and its bytes at these rates.
//
// The form "serve" (a contender) is for internal use.
package models
