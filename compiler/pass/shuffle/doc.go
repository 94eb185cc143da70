// Package shuffle is the pass that combines the partial results of neighbouring threads in their registers.
package shuffle
