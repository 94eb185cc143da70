// Package soak runs the tests of the whole module over and over while other processes load every processor, plain and
// under the race detector, with different numbers of Go's processors, and prints which tests failed how often. A test
// that fails once in fifty runs is a defect: of the test, which then asserts what the code does not promise, or of the
// code.
//
//	go run ./lab soak -runs 20                      every package in each of the four settings, 20 times
//	go run ./lab soak -limit 1h ./tracker ./internal/agent   two packages, as often as an hour allows
//
// Twenty runs in each setting take many hours. Calls therefore add up in ledger.jsonl, which is committed: it counts
// the runs of each package since its last failure, on whatever machine, with the first and the last commit that they
// tested. Each call begins with what has the fewest. Tests that run side by side load the processors, too, and waste
// none of their time: -load 0 -p 4. The output of what fails stays in the folder -keep. The exit status is 1 when one
// of this call's runs failed. Begin to read at repeat.go.
package soak
