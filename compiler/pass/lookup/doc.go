// Package lookup is the pass that looks functions of a quantised value up: from one integer of eight bits to another,
// whatever is computed in between is one of 256 answers.
package lookup
