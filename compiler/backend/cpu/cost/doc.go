// Package cost estimates the cost of a schedule without lowering it: the cycles of one core that each statement
// takes. The coefficients of a stage's accesses determine which part of it is computed where, and how often. Package
// machine models the core and its caches. An analysis holds, per statement, its operations and accesses, the unrolled
// tile, the lines and pages filled into each cache, the cycles of each, and the sums of all. It accepts schedules of
// any origin and is independent of sketches, their knobs, and the features of cost models.
//
// Start with cost.go and statement.go, which call the steps in order. body.go, load.go and quotient.go read a stage's
// computation. place.go and nest.go determine how much of it is computed at a time. tile.go finds the microkernel.
// traffic.go follows the reuse outwards. spend.go converts everything into cycles.
package cost
