// Package cost estimates the cost of a schedule without lowering it: the cycles of one core that each statement
// takes. The coefficients of a stage's accesses determine which part of it is computed where, and how often. Package
// microarch models the core and its caches. An analysis holds, per statement, its operations and accesses, the
// unrolled tile, the lines and pages filled into each cache, the cycles of each, and the sums of all. It accepts
// schedules of any origin and is independent of sketches, their knobs, and the features of cost models. Sketches whose
// loops follow from knobs alone give them to Follow, without a schedule.
//
// Start with cost.go and statement.go, which run the steps: parse a stage's expressions, determine how many elements
// each loop computes, find the microkernel, derive cache traffic from reuse, and convert all of it into cycles.
package cost
