// Package barrier is the pass that makes the threads of a GPU's blocks wait for one another where they must. Begin
// with Run.
package barrier
