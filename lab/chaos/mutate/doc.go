// Package mutate asks whether the tests notice when a promise is broken. Each mutation of the table takes one line
// away that a promise rests on, or turns it round, and names the test of docs/reliability.md that must fail then. The
// tree is not touched: the compiler reads the changed file from elsewhere.
//
//	go run ./lab mutate                all mutations
//	go run ./lab mutate -only lease    those whose name has "lease"
//
// The exit status is 1 when a mutation survives, or no longer fits the code.
package mutate
