package transfer

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/costmodel"
)

// Job is the knowledge shared by the searches of one job. It is not safe for concurrent use.
type Job struct {
	history *History
	samples []costmodel.Sample
	views   int
	// model was trained on the history and on the first trained samples of the job.
	model   *costmodel.Model
	trained int
	err     error
}

// NewJob returns the knowledge of a job with a history, which may be nil.
func NewJob(h *History) *Job { return &Job{history: h} }

// View is the knowledge available to the search of one task.
type View struct {
	job    *Job
	space  *searchspace.Space
	digest string
	// number identifies the view within the job.
	number int
}

// View returns the knowledge for a search over s.
func (j *Job) View(s *searchspace.Space) *View {
	j.views++
	return &View{job: j, space: s, digest: s.Workload.Digest(), number: j.views}
}

// Known returns earlier trials of the same workload on the same target, fastest first.
func (v *View) Known() []Trial {
	if v.job.history == nil {
		return nil
	}
	return v.job.history.known(v.digest)
}

// Near returns points that were fast for similar workloads, most promising first.
func (v *View) Near() []searchspace.Point {
	if v.job.history == nil {
		return nil
	}
	return v.job.history.near(v.space, v.digest)
}

// Learn records a successful trial.
func (v *View) Learn(r Row, latencySeconds float64) {
	v.job.samples = append(v.job.samples, costmodel.Sample{Features: r, Task: taskName(v.number), LatencySeconds: latencySeconds})
}

// Times predicts the base-2 logarithm of the nanoseconds of rows. For unknown tasks the prediction is the
// analytic cost, which is correct up to a constant.
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

// Err returns the reason why the model cannot be used, or nil. Without the model, searches rank by the analytic cost.
func (j *Job) Err() error { return j.err }

// current returns the model, trained up to the latest step.
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

// firstSamples is the number of trials of a job that trigger the first training of its model.
const firstSamples = 8

// step returns how many of n samples to train on. Training on every new sample would be wasteful, and the
// model must be a function of the samples alone.
func step(n int) int {
	at := 0
	for next := firstSamples; next <= n; next += max(8, next/6) {
		at = next
	}
	return at
}
