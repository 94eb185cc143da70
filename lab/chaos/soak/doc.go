// Package soak repeats the tests of the whole module under load. It varies the race detector and GOMAXPROCS, and
// prints how often each test failed. A test that fails once in fifty runs is a defect of the test or the code.
//
//	go run ./lab soak -runs 20                      every package in each of the four settings, 20 times
//	go run ./lab soak -limit 1h ./tracker ./internal/agent   two packages, as often as an hour allows
//
// Twenty runs in each setting take many hours. Calls therefore accumulate in ledger.jsonl, which is committed. It
// counts the runs of each package since its last failure, on any machine, with the first and last commit tested. Each
// call starts with the packages that have the fewest. Parallel tests are sufficient load and waste no time: -load 0
// -p 4. The output of failures stays in the folder -keep. The exit status is 1 if a run failed. Start with repeat.go.
package soak
