// Package sketch derives the candidate schedules of a workload on a processor. Rules read the workload's expressions,
// cut it into nests of loops, and choose a sketch for each, the structure of its loops. The numbers that the sketch of
// the heaviest nest leaves open are the knobs of the space: register tile, cache blocks, loop orders, unrolling, where
// padding is computed. The space is meant to contain the schedules that experts write by hand.
//
// A sketch is a room of its own, with what it matches, its parameters, what is legal, what it costs, how it is
// applied, and candidates that are known to be good. Begin to read in plan.go, which lists them.
package sketch
