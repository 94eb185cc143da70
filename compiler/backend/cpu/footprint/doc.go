// Package footprint says how much of the memory hierarchy a part of a tensor occupies, and what the levels of a
// target's hierarchy hold. The analytic cost of a schedule and the features of the learnt one are both made from it.
package footprint
