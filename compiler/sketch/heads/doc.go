// Package heads finds softmax attention in workloads: two products with a softmax of rows between them, for each head
// of a batch.
package heads
