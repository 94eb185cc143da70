// Package preload is the pass that has a thread of a GPU load what it needs of global memory for several results
// before it computes the first one. Begin with Run.
package preload
