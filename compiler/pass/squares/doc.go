// Package squares is the pass that multiplies two rows by two columns in one instruction, where the machine has one.
package squares
