// Package roofline computes the least time that a workload can take on a machine, by its arithmetic and by its
// bytes (Williams, Waterman and Patterson, "Roofline", CACM 2009, with a rate for each cache). It depends on
// workloads and measured rates, but not on backends.
package roofline
