// Package refusal has the errors with which the tracker refuses what is asked of it, apart from how they are told:
// each has a kind that says what the caller may do, and a text. It knows nothing. Services make statuses of them.
package refusal
