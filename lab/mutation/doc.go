// Package mutation implements mutation testing. Each mutation of mutations.txt removes or inverts one line of code
// that a guarantee depends on, and names the test in docs/reliability.md that must fail. The tree stays unchanged:
// the compiler reads the changed file through an overlay.
//
//	go run ./lab mutate                all mutations
//	go run ./lab mutate -only lease    those whose name has "lease"
//
// The exit status is 1 if a mutation survives or no longer applies to the code.
package mutation
