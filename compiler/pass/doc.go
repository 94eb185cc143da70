// Package pass transforms kernels between lowering and printing. A pass returns an equivalent program and modifies
// nothing in place. Each backend lists its passes in order and runs them with Apply.
package pass
