// Package wide is the pass that copies neighbouring elements to a GPU's shared memory at once. Begin with Run.
package wide
