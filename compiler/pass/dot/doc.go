// Package dot is the pass that multiplies and adds up neighbouring elements in one instruction, where the machine has
// one.
package dot
