// Package transfer implements transfer learning between tasks: it collects measurements of the same job and earlier
// ones, and trains a cost model on them.
//
// A History holds the earlier measurements. It is immutable and may be shared by jobs. A Job adds the
// measurements made while it runs. All results are functions of the history and the order of the job's
// trials, so that a resumed or transferred job continues in the same way.
package transfer
