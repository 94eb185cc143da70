// Package padding is the pass that leaves the products of padding out of sums. Begin with Run.
package padding
