// Package operators benchmarks single operators: the sets ansor (the evaluation of Ansor, OSDI 2020), grouped
// (convolutions with small groups), library (against oneDNN and ggml) and blocks (block-quantised weights). For each
// operator it prints the machine's limit and the latency of the default schedule.
//
//	go run ./lab operators -version HEAD                     default schedules, 1 and 2 threads, batch 1 and 16
//	go run ./lab operators -operators C2D,DEP -batch 1 -threads 1
//	go run ./lab operators -set library -peers .tools/peers  interleaved with oneDNN and ggml
//	go run ./lab operators table -set library                print the tables of all results in Markdown
//
// "Limit by FLOP" counts direct sums at the rate of multiply-adds, which Winograd's algorithm may beat. "By bytes"
// counts constants at the memory's rate, and inputs and outputs at the rate of the fastest cache that holds them. "Of
// limit" is the larger limit divided by the default schedule's time. Weights are cold and inputs warm, also for
// libraries.
//
// Rows are saved in a file. A run resumes an earlier one of the same version.
package operators
