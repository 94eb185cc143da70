// Command operators measures single operators: the set of Ansor's evaluation, or the tasks of a model. It writes a
// Markdown table with, for each, the limit that the machine sets (by its multiply-add rate and memory bandwidth, as
// 'tilth tune' measures them), the latency of the default schedule and that of the best one after tuning.
//
//	go run ./lab/bench/operators -version HEAD                     default schedules, 1 and 2 threads, batch 1 and 16
//	go run ./lab/bench/operators -operators C2D,DEP -batch 1 -threads 1 -time 60s
//	go run ./lab/bench/operators -model resnet50.onnx
//	go run ./lab/bench/operators -operators CAP -neighbours -points
//	go run ./lab/bench/operators -set library -peers .tools/peers  in turns with oneDNN and ggml
//	go run ./lab/bench/operators table -into docs/performance-operators.md
//
// Rows are kept in a file: a run goes on where one of the same version ended.
package main
