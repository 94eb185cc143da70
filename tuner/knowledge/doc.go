// Package knowledge is what searches know beside their own trials: what was measured of other tasks, in the same job
// and before it, and the cost model learnt from all of that.
//
// A History is what was measured before; it never changes and may be shared by any number of jobs. A Job adds what is
// measured while it runs. Everything is a function of the history and the order of the job's trials, so that a job
// that is resumed, or handed to another process, goes on alike.
package knowledge
