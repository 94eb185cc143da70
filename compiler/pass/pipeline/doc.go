// Package pipeline is the pass that fills shared memory ahead of the loops that read it. Begin with Run.
package pipeline
