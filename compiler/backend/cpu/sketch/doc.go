// Package sketch derives the candidate schedules of a workload on a processor. Rules read the workload's expressions
// and choose a sketch for each nest, the structure of its loops; the numbers that the sketch of the heaviest nest
// leaves open are the knobs of the space: register tile, cache blocks, loop orders, unrolling, where padding is
// computed. The space is meant to contain the schedules that experts write by hand. Begin to read in plan.go.
package sketch
