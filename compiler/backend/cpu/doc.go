// Package cpu is the backend for processors. Candidates are C with vector types, compiled to shared objects, and run
// on a thread pool.
package cpu
