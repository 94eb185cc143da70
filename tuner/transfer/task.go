package transfer

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// Task holds the measurements of one workload on one target. It must not be changed or copied once it is part
// of a History. Several histories may share it.
type Task struct {
	Workload *expr.Workload
	// Target is the target of the measurements.
	Target *target.Target
	Trials []Trial

	once sync.Once
	read reading

	describing sync.Mutex
	// described caches the rows of trials by origin, so that histories that share the task compute each once.
	described map[string]Row
}

// Trial is one measurement.
type Trial struct {
	// Origin is the point as text (searchspace.Format).
	Origin string
	// Digest identifies the measured trace; empty if unknown.
	Digest string
	// LatencySeconds is the median of the samples; 0 for a failed trial.
	LatencySeconds float64
}

// reading caches data derived from a task.
type reading struct {
	space *searchspace.Space
	shape expr.Shape
	// digest is the digest of the workload.
	digest string
	// ranked holds the successful trials, fastest first.
	ranked []Trial
	knobs  string
}

// derive derives the data that a history needs from the task, once.
func (t *Task) derive() *reading {
	t.once.Do(func() {
		r := &t.read
		r.shape, r.digest = expr.ShapeOf(t.Workload.Text()), t.Workload.Digest()
		var err error
		if r.space, err = registry.Space(t.Workload, t.Target, schedule.Fast); err != nil {
			return // the program lacks the backend, so the task cannot be used
		}
		for _, trial := range t.Trials {
			if trial.LatencySeconds > 0 {
				r.ranked = append(r.ranked, trial)
			}
		}
		slices.SortStableFunc(r.ranked, func(a, b Trial) int { return cmp.Compare(a.LatencySeconds, b.LatencySeconds) })
		r.knobs = knobNames(r.space)
	})
	return &t.read
}

// describes returns the row of a trial, empty if its point does not apply.
func (t *Task) describes(trial Trial) Row {
	t.describing.Lock()
	defer t.describing.Unlock()
	row, known := t.described[trial.Origin]
	if known {
		return row
	}
	s := t.derive().space
	if p, ok := s.Parse(trial.Origin); ok {
		if sch, err := s.Apply(p); err == nil {
			row = Describe(s, p, sch)
		}
	}
	if t.described == nil {
		t.described = map[string]Row{}
	}
	t.described[trial.Origin] = row
	return row
}

// knobNames returns a key that is equal for spaces with interchangeable points.
func knobNames(s *searchspace.Space) string {
	names := ""
	for _, k := range s.Knobs {
		names += k.Name + " "
	}
	return names
}

// Latencies returns the earlier trials of a space's workload on the history's own target that show how far
// the space was searched, in order; 0 marks a failed trial. Points that the space no longer contains do not
// count. It returns nil for a nil history, or if the current default schedule was never measured.
func (h *History) Latencies(s *searchspace.Space) (list []float64) {
	t := h.own(s.Workload.Digest())
	if t == nil || !t.measured(s, s.Default()) {
		return nil
	}
	for _, trial := range t.Trials {
		if _, ok := trial.pointOf(s); ok {
			list = append(list, trial.LatencySeconds)
		}
	}
	return list
}

// measured reports whether the schedule of a point is among the trials.
func (t *Task) measured(s *searchspace.Space, p searchspace.Point) bool {
	sch, err := s.Apply(p)
	if err != nil {
		return false
	}
	digest := schedule.Digest(sch.Trace())
	return slices.ContainsFunc(t.Trials, func(trial Trial) bool { return trial.Digest == digest })
}

// pointOf returns the trial's point if the space still has exactly that point: each of its knobs exists, with
// the same value.
func (t Trial) pointOf(s *searchspace.Space) (searchspace.Point, bool) {
	p, ok := s.Parse(t.Origin)
	return p, ok && s.Format(p) == t.Origin
}

// Row holds the features of a point.
type Row = costfeatures.Row

// Describe returns the row of a legal point of s with schedule sch. The row is empty, and unusable by models,
// if the target's backend is unknown.
func Describe(s *searchspace.Space, p searchspace.Point, sch *schedule.Schedule) Row {
	b, err := registry.Of(s.Target)
	if err != nil {
		return Row{}
	}
	return b.Features().Describe(sch, s.Target, s.Cost(p))
}

// Costs returns the base-2 logarithms of the analytic costs of rows.
func Costs(rows []Row) []float64 {
	var analytic *costmodel.Model
	costs, _ := analytic.Times(rows) // the analytic cost needs no model features
	return costs
}

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
