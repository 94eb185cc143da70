// Package transpose is the pass that finds squares of elements which are copied with their rows and columns exchanged,
// so that they can be exchanged in registers.
package transpose
