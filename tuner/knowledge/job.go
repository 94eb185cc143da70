package knowledge

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/costmodel"
)

// Job is what the searches of one job share. It is not safe for concurrent use.
type Job struct {
	history *History
	samples []costmodel.Sample
	views   int
	// model was trained on the history and the first trained samples.
	model   *costmodel.Model
	trained int
	err     error
}

// NewJob begins a job that knows a history; nil means nothing.
func NewJob(h *History) *Job { return &Job{history: h} }

// View is what the search of one task sees.
type View struct {
	job    *Job
	space  *space.Space
	digest string
	// number tells the job's views apart.
	number int
}

// View is the knowledge for a search over s.
func (j *Job) View(s *space.Space) *View {
	j.views++
	return &View{job: j, space: s, digest: s.Workload.Digest(), number: j.views}
}

// Known are earlier trials of the same workload on the same target, fastest first.
func (v *View) Known() []Trial {
	if v.job.history == nil {
		return nil
	}
	return v.job.history.known(v.digest)
}

// Near are points that were good for workloads like this one, the most promising first.
func (v *View) Near() []space.Point {
	if v.job.history == nil {
		return nil
	}
	return v.job.history.near(v.space, v.digest)
}

// Learn hears of a trial that did not fail.
func (v *View) Learn(r Row, latencySeconds float64) {
	v.job.samples = append(v.job.samples, costmodel.Sample{Features: r, Task: taskName(v.number), LatencySeconds: latencySeconds})
}

// Times predicts the logarithm, base 2, of the nanoseconds that rows take; of tasks that nothing is known of, it is
// the analytic cost and right but for a constant.
func (v *View) Times(rows []Row) []float64 {
	m, err := v.job.current()
	if err == nil {
		var times []float64
		if times, err = m.Times(rows); err == nil {
			return times
		}
	}
	v.job.err = cmp.Or(v.job.err, err)
	return Costs(rows)
}

// Err is why the model could not be used, if it could not: searches then rank by the analytic cost.
func (j *Job) Err() error { return j.err }

// current is the model after the latest step of training.
func (j *Job) current() (*costmodel.Model, error) {
	var base *costmodel.Model
	if j.history != nil {
		var err error
		if base, err = j.history.learnt(); err != nil {
			return nil, err
		}
	}
	if j.model == nil {
		j.model = base
	}
	n := step(len(j.samples))
	if n == j.trained {
		return j.model, nil
	}
	m, err := costmodel.Train(context.Background(), base, j.samples[:n], jobOptions(n))
	if err != nil {
		return nil, err
	}
	j.model, j.trained = m, n
	return m, nil
}

// firstSamples is how many trials of a job begin to change its model.
const firstSamples = 8

// step is how many of n samples a model is trained on: not every new one is worth training again, and the model must
// depend on nothing but the samples.
func step(n int) int {
	at := 0
	for next := firstSamples; next <= n; next += max(8, next/6) {
		at = next
	}
	return at
}
