// Command soak runs the tests of the whole module over and over while other processes load every processor, plain and
// under the race detector, with different numbers of Go's processors, and prints which tests failed how often. A test
// that fails once in fifty runs is a defect: of the test, which then asserts what the code does not promise, or of the
// code.
//
//	go run ./chaos/soak -runs 20                      every package in each of the four settings, 20 times
//	go run ./chaos/soak -limit 1h ./tracker ./agent   two packages, as often as an hour allows
//
// Each run adds a line to results.jsonl in the folder -keep, and the output of what failed stays beside it, so that
// several calls add up. The exit status is 1 when one of this call's runs failed.
package main
