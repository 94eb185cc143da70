// Package fusion cuts a graph into kernels: each product or reduction takes the elementwise operators behind it
// (epilogue) and before it (prologue), and kernels can run in the order that it gives them. It knows graphs whose
// values have places. Begin to read at partition.go.
package fusion
