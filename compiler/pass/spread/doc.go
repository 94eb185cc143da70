// Package spread is the pass that decides where the buffers of a GPU's blocks lie, and spreads those in registers over
// the threads. Begin with Run.
package spread
