// Package footprint says how much of the memory hierarchy a part of a tensor occupies. The analytic cost of a schedule
// and the features of the learnt one are both made from it.
package footprint
