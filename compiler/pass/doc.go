// Package pass transforms kernels between lowering and printing. A pass returns an equivalent program and modifies
// nothing in place. The table lists all passes, with the rules for their order. Each backend has an Order of its own.
package pass
