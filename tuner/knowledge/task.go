// Package knowledge is what searches know beside their own trials: what was measured of other tasks, in the same job and before it,
// and the cost model learnt from all of that.
//
// A History is what was measured before; it never changes and may be shared by any number of jobs. A Job adds what is measured
// while it runs. Everything is a function of the history and the order of the job's trials, so that a job that is resumed, or
// handed to another process, goes on alike.
package knowledge

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Task is what was measured of one workload on one target. It must not be changed once it is part of a History.
type Task struct {
	Workload *expr.Workload
	// Target is where it was measured.
	Target *target.Target
	Trials []Trial
}

// Trial is one measurement.
type Trial struct {
	// Origin is the point as text (space.Format).
	Origin string
	// LatencySeconds is the median of its samples; 0 when it failed.
	LatencySeconds float64
}
