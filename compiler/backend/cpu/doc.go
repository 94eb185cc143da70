// Package cpu is the backend of processors: candidates are C with vector types, compiled to shared objects, and run on
// a pool of threads.
package cpu
