// Command soak runs the tests of the whole module over and over while other processes load every processor, plain and
// under the race detector, with different numbers of Go's processors, and prints which tests failed how often. A test
// that fails once in fifty runs is a defect: of the test, which then asserts what the code does not promise, or of the
// code.
//
//	go run ./chaos/soak -runs 20                      every package in each of the four settings, 20 times
//	go run ./chaos/soak -limit 1h ./tracker ./agent   two packages, as often as an hour allows
//
// Each run of a package adds a line to results.jsonl in the folder -keep, and the output of what failed stays beside
// it. Several calls add up: each runs first what has the fewest runs since its last failure, so that a soak of many
// hours can be made of short ones. The exit status is 1 when one of this call's runs failed. Begin to read at
// repeat.go.
package main
