// Package sink is the pass that moves loops into the threads of a GPU that run them. Begin with Run.
package sink
