package progress

import "time"

// Point is the total latency of all tasks from some moment of a job on.
type Point struct {
	// Elapsed is the time since the job's creation, and Trials the number of recorded trials.
	Elapsed time.Duration
	Trials  int
	Seconds float64
}

// Curve is the weighted sum of the tasks' best latencies over time. It starts when every task has a latency,
// and has a point for each change.
type Curve []Point

func (c *Curve) add(t *Tally) {
	best := t.BestSeconds()
	if best == 0 || len(*c) > 0 && (*c)[len(*c)-1].Seconds == best {
		return
	}
	*c = append(*c, Point{Elapsed: t.Elapsed(), Trials: t.Trials(), Seconds: best})
}
