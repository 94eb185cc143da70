// Package seeds keeps schedules that other compilers chose, as points at which searches begin. A seed has tiles and no
// latency: what another compiler measured says nothing of the code made here. It belongs to an operator, and so to
// each workload whose heaviest sum is that operator, whatever follows the sum. Begin with File and Points.
package seeds
