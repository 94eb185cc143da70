// Package transfer holds what searches learn from other tasks (transfer learning): their measurements, in
// the same job and before it, and the cost model trained on them.
//
// A History holds the earlier measurements. It is immutable and may be shared by jobs. A Job adds the
// measurements made while it runs. All results are functions of the history and the order of the job's
// trials, so that a resumed or transferred job continues in the same way.
package transfer
