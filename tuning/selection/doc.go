// Package selection chooses the schedules that a model is compiled with: the best records, else what a cost model
// predicts, else default schedules, within limits on memory. It knows the compiler and what searches know; records
// come through a Lookup. Begin with Choose.
package selection
