// Package cost tells what a schedule costs: where the time of each of its statements goes, in cycles of one core,
// without lowering it. What part of each stage is computed where, and how often, follows from the coefficients of its
// accesses; package machine says what a core and its caches do with that. An analysis has, for each statement, its
// operations and accesses, the tile that is written out, the lines and pages that come into each store, and the cycles
// of each; and sums of all. It knows schedules of any origin, and nothing of sketches, their knobs, or what a cost
// model reads of an analysis.
//
// Begin with cost.go and statement.go, which call the steps in order: body.go, load.go and quotient.go read what a
// stage computes, place.go and nest.go settle how much of it is computed at a time, tile.go finds the microkernel,
// traffic.go follows the reuse outwards, and spend.go turns all of it into cycles.
package cost
