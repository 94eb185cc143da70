// Package sketch derives the candidate schedules of a workload on a processor. Rules read the workload's expressions,
// divide it into loop nests, and choose a sketch for each, the structure of its loops. The parameters of the heaviest
// nest's sketch are the knobs of the space: register tile, cache blocks, loop orders, unrolling, and where padding is
// computed. The space is meant to contain the schedules that experts write by hand.
//
// A sketch defines what it matches, its parameters, their legality, their cost, how they are applied, and seeds that
// are known to be good. Start with sketches.go, which lists the sketches.
//
// Sketches compute costs from parameters, without a schedule, about fifty times as fast as package cost, which accepts
// any schedule (see its BenchmarkCost). A test of package cost checks their agreement.
package sketch
