// Package partition is the pass that takes conditions out of loops.
package partition
