// Package fusion partitions a graph into kernels, in an order in which they can run. Each product or reduction
// includes elementwise operators after it (epilogue) and before it (prologue). It requires graphs whose values have
// places. Partition is the entry point.
package fusion
