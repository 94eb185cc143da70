// Package tensorize is the pass that has a GPU's instructions for matrices compute sums of products. Begin with Run.
package tensorize
