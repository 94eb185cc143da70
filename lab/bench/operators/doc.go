// Package operators measures single operators: the sets ansor (the evaluation of Ansor, OSDI 2020), grouped
// (convolutions with small groups), library (beside oneDNN and ggml) and blocks (weights in blocks), or the tasks of
// a model. For each it prints the machine's limit, the latency of the default schedule and, after tuning, that of
// the best one.
//
//	go run ./lab operators -version HEAD                     default schedules, 1 and 2 threads, batch 1 and 16
//	go run ./lab operators -operators C2D,DEP -batch 1 -threads 1 -time 60s
//	go run ./lab operators -model resnet50.onnx
//	go run ./lab operators -operators CAP -neighbours -points
//	go run ./lab operators -set library -peers .tools/peers  in turns with oneDNN and ggml
//	go run ./lab operators table -set library                print the tables of all results in Markdown
//
// "Limit by FLOP" counts direct sums at the rate of multiply-adds, which Winograd's algorithm may beat. "By bytes"
// counts constants at the memory's rate, and inputs and outputs at the rate of the fastest cache that holds them.
// "Of limit" is the larger of the two over the default schedule's time. Weights are cold and inputs warm for
// libraries, too.
//
// Rows are kept in a file: a run resumes one of the same version.
package operators
