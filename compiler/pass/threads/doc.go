// Package threads is the pass that gives everything in a kernel for a GPU its launch and its threads. Begin with Run.
package threads
