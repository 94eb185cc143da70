// Package sketch derives the candidate schedules of a workload on a processor. Rules read the workload's expressions,
// cut it into nests of loops, and choose a sketch for each, the structure of its loops. The numbers that the sketch of
// the heaviest nest leaves open are the knobs of the space: register tile, cache blocks, loop orders, unrolling, where
// padding is computed. The space is meant to contain the schedules that experts write by hand.
//
// A sketch is a room of its own, with what it matches, its parameters, what is legal, what it costs, how it is
// applied, and candidates that are known to be good. Begin to read in plan.go, which lists them.
//
// What it costs is told from its parameters, without a schedule. Package cost tells the same from any schedule, but
// prices 2000 to 13000 points a second where parameters take 150000 to 650000 (its BenchmarkCost on a product and a
// 3x3 convolution; one core of a busy EPYC with AVX-512). The default schedules of ResNet-50 take 20000 points: a
// tenth of a second, and otherwise some six. A test of package cost says how well both agree.
package sketch
