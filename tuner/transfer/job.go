package transfer

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
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
func (v *View) Known() []Trial { return v.job.history.Trials(v.digest) }

// Former returns earlier trials of the same workload on the same target with another compiler, fastest first.
func (v *View) Former() []Trial { return v.job.history.formerTrials(v.digest) }

// Similar returns points that were fast for similar workloads, most promising first.
func (v *View) Similar() []searchspace.Point {
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
	j.model = cmp.Or(j.model, base)
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

// Prediction is a schedule that was never measured.
type Prediction struct {
	Point    searchspace.Point
	Schedule *schedule.Schedule
	// Seconds is the predicted latency.
	Seconds float64
	// Default is set for the default schedule, which is used when nothing is known.
	Default bool
}

const (
	// guessDraws points are drawn for a guess; the analytic cost drafts guessDrafted of them.
	guessDraws   = 384
	guessDrafted = 64
	// guessGain is the predicted speed-up over the default schedule from which a schedule is preferred to it.
	guessGain = 1.05
)

// Predictions returns the schedule that the model predicts to be fastest for each algorithm of a space with a
// legal point. It returns none if there are no measurements. The same history gives the same guesses.
func (h *History) Predictions(s *searchspace.Space) ([]Prediction, error) {
	if h == nil {
		return nil, nil
	}
	m, err := h.learnt()
	if err != nil || m == nil {
		return nil, err
	}
	defaults, err := h.predicted(s, m, s.Defaults())
	if err != nil {
		return nil, err
	}
	others, err := h.predicted(s, m, h.promising(s))
	for k, d := range defaults {
		defaults[k].Default = true
		for _, g := range others {
			if s.Algorithm(g.Point) == s.Algorithm(d.Point) && g.Seconds*guessGain < d.Seconds && g.Seconds < defaults[k].Seconds {
				defaults[k] = g
			}
		}
	}
	return defaults, err
}

// promising returns the points of similar tasks, the hand-written ones, and the analytically best of a fixed sample.
func (h *History) promising(s *searchspace.Space) []searchspace.Point {
	rng := rand.New(rand.NewPCG(3, 4))
	drawn := s.Draws(rng, guessDraws)
	s.Sort(drawn)
	points := append(h.near(s, s.Workload.Digest()), s.Seeds()...)
	return append(points, drawn[:min(guessDrafted, len(drawn))]...)
}

// predicted returns guesses for the points that apply, in order.
func (h *History) predicted(s *searchspace.Space, m *costmodel.Model, points []searchspace.Point) ([]Prediction, error) {
	var list []Prediction
	var rows []Row
	for _, p := range points {
		if sch, err := s.Apply(p); err == nil {
			list, rows = append(list, Prediction{Point: p, Schedule: sch}), append(rows, Describe(s, p, sch))
		}
	}
	times, err := m.Times(rows)
	for k := range list {
		list[k].Seconds = math.Exp2(times[k]) * 1e-9
	}
	return list, err
}

const (
	// nearTasks is the number of neighbouring tasks to take points from.
	nearTasks = 6
	// pointsPerNeighbour is the number of points taken from each neighbour; neighbourSlack is how much slower than
	// its best they may be.
	pointsPerNeighbour = 6
	neighbourSlack     = 1.25
	// unrelatedDistance is the distance added between workloads of different classes whose spaces have the same knobs.
	unrelatedDistance = 8
)

// near returns points of s that were fast for the same workload on a sibling target or for similar workloads.
// The nearest task comes first, and the best points of all tasks come before the second best.
func (h *History) near(s *searchspace.Space, digest string) []searchspace.Point {
	tasks := h.neighbours(s, digest)
	var points []searchspace.Point
	seen := map[string]bool{}
	for rank := range pointsPerNeighbour {
		for _, t := range tasks {
			r := t.derive()
			if rank >= len(r.ranked) || r.ranked[rank].LatencySeconds > neighbourSlack*r.ranked[0].LatencySeconds {
				continue
			}
			if p, ok := s.Parse(r.ranked[rank].Origin); ok && !seen[p.Key()] {
				seen[p.Key()] = true
				points = append(points, p)
			}
		}
	}
	return points
}

// neighbours returns the tasks nearest to a workload, excluding the workload itself on the same target.
func (h *History) neighbours(s *searchspace.Space, digest string) []*Task {
	type neighbour struct {
		task     *Task
		distance float64
	}
	own, knobs, flop := expr.ShapeOf(s.Workload.Text()), knobNames(s), s.Workload.Flop()
	var list []neighbour
	for _, t := range h.tasks {
		r := t.derive()
		sibling := t.Target.Fingerprint() != h.target.Fingerprint()
		if len(r.ranked) == 0 || r.digest == digest && !sibling {
			continue
		}
		d := own.Distance(r.shape)
		if math.IsInf(d, 1) {
			if r.knobs != knobs {
				continue
			}
			d = unrelatedDistance + math.Abs(math.Log2((flop+1)/(t.Workload.Flop()+1)))
		}
		if sibling {
			d += 0.5
		}
		list = append(list, neighbour{t, d})
	}
	slices.SortStableFunc(list, func(a, b neighbour) int { return cmp.Compare(a.distance, b.distance) })
	var tasks []*Task
	for _, n := range list[:min(nearTasks, len(list))] {
		tasks = append(tasks, n.task)
	}
	return tasks
}
