// Package cse is the pass that reads memory once: what straight-line code loads is kept in a register until it may
// have changed. No two buffers share memory. Compilers cannot tell: of pointers that are no parameters they do not use
// restrict, and would load again behind each store.
package cse
