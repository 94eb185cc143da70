// Package knowledge is what searches know besides their own trials: measurements of other tasks, in the same job and
// before it, and the cost model learnt from them (transfer learning).
//
// A History has the earlier measurements; it never changes, and jobs may share it. A Job adds those made while it
// runs. Everything is a function of the history and the order of the job's trials, so that a job that is resumed, or
// handed to another process, continues in the same way.
package knowledge
