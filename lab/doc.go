// Command lab runs the laboratory: benchmarks and tests of Tilth that are not part of the product.
//
//	go run ./lab record -o sets          measure all candidates of tasks
//	go run ./lab search sets             compare searches on them
//	go run ./lab costmodel sets          compare cost models on them, or train one
//	go run ./lab simulate --devices 1000 --jobs 50
//	                                     load-test a tracker with simulated agents
//	go run ./lab scale                   draw the cost of a result over devices and records
//	go run ./lab models                  compare compiled models with ONNX Runtime
//	go run ./lab operators               compare single operators with the machine's limits
//	go run ./lab gpu                     run everything that needs an NVIDIA GPU
//	go run ./lab mutate                  mutation testing: break each guarantee; its test must fail
//
// The main package only wires. record, search and costmodel are implemented by package replay, simulate and scale by
// package loadtest, mutate by package mutation, and each other command by the package of its name.
package main
