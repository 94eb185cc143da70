package trials

import "time"

// Point is the latency of all tasks together from one instant of a job on.
type Point struct {
	// Elapsed is the time since the job was made, Trials what was recorded until then.
	Elapsed time.Duration
	Trials  int
	Seconds float64
}

// Curve is how the sum of the tasks' best latencies, each as often as it occurs, went with time. It begins when every
// task has a latency, and has a point for each change.
type Curve []Point

func (c *Curve) add(t *Tally) {
	best := t.BestSeconds()
	if best == 0 || len(*c) > 0 && (*c)[len(*c)-1].Seconds == best {
		return
	}
	*c = append(*c, Point{Elapsed: t.Elapsed(), Trials: t.Trials(), Seconds: best})
}
