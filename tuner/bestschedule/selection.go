package bestschedule

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// Origins of schedules in a package's manifest.
const (
	FromRecord = "tuned"
	// FromTransfer is the cost model's best guess, learned from the records of other workloads.
	FromTransfer = "transferred"
	FromDefault  = "default"
)

// Lookup returns the best records of workloads on a target that a numerics level allows, omitting workloads
// without one.
type Lookup func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error)

// Learn returns the measurements of any workload on a target and its siblings, or nil.
type Learn func(context.Context, *target.Target) (*transfer.History, error)

// Confirm measures a record's schedule on this machine against the default schedule, and returns its latency
// in seconds, or why it cannot be trusted. For a record made here it returns neither.
type Confirm func(ctx context.Context, r *tilthv1.Record, s, standard *schedule.Schedule) (seconds float64, refused string, err error)

// Sources provides the schedules. All fields may be nil.
type Sources struct {
	Lookup Lookup
	// Learn is called at most once, if a task has no record.
	Learn Learn
	// Confirm is called for each record before it is used.
	Confirm Confirm
	// Refused, if not nil, is called for each record that cannot be used, with the reason.
	Refused func(task program.Task, reason string)
	// Own reports whether a hand-written kernel from a record may be used; nil allows none.
	Own func(*userkernel.Kernel) bool
	// MaxBytes is the size of the package that algorithms may use for larger weights; 0 means any.
	MaxBytes int64
}

// Choose returns a schedule for each task of a program: that of the best record, or else the cost model's best guess,
// or else the default. A record does not count if it does not replay or exceeds the numerics level. If the algorithms
// would make the weights too large, other alternatives are chosen that minimise the total time within the limit.
func Choose(ctx context.Context, p *program.Program, t *target.Target, numerics schedule.Numerics, from Sources, log *slog.Logger) ([]aot.Choice, error) {
	c := &chooser{target: t, Sources: from, log: log}
	tasks, err := c.alternatives(ctx, p.Tasks, numerics)
	if err != nil {
		return nil, err
	}
	picked := make([]int, len(tasks))
	if limit := limitOf(p, c.MaxBytes); !fastest(tasks).within(limit) {
		if err := c.addLighter(ctx, p.Tasks, tasks, numerics); err != nil {
			return nil, err
		}
		picked = pick(p.Tasks, tasks, limit)
	}
	chosen := make([]alternative, len(tasks))
	for k, list := range tasks {
		chosen[k] = list[picked[k]]
	}
	if err := c.alike(p, tasks, chosen, numerics); err != nil {
		return nil, err
	}
	choices := make([]aot.Choice, len(tasks))
	for k, a := range chosen {
		choices[k] = a.choice
	}
	return choices, nil
}

// chooser chooses for one target.
type chooser struct {
	Sources
	target *target.Target
	log    *slog.Logger
	// history is the result of Learn.
	history *transfer.History
	learnt  bool
}

// alternatives returns the known alternatives of each task without further lookups, fastest first: the best
// record, or the predictions for each algorithm.
func (c *chooser) alternatives(ctx context.Context, tasks []program.Task, numerics schedule.Numerics) ([][]alternative, error) {
	best, err := c.best(ctx, tasks, numerics)
	if err != nil {
		return nil, err
	}
	lists := make([][]alternative, len(tasks))
	for i, task := range tasks {
		if r := best[task.Workload.Digest()]; r != nil {
			a, err := c.recorded(ctx, task, r, numerics)
			if err == nil && a == nil {
				a, err = c.scheduled(ctx, task, r, numerics)
			}
			if err != nil {
				return nil, err
			}
			if a != nil {
				lists[i] = []alternative{*a}
				continue
			}
		}
		if lists[i], err = c.unmeasured(ctx, task, numerics); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// addLighter adds alternatives for records that enlarge the weights.
func (c *chooser) addLighter(ctx context.Context, tasks []program.Task, lists [][]alternative, numerics schedule.Numerics) (err error) {
	for k, list := range lists {
		if record := list[0]; record.choice.Origin == FromRecord && record.added.all > 0 {
			if lists[k], err = c.lighter(ctx, tasks[k], record, numerics); err != nil {
				return err
			}
		}
	}
	return nil
}

// best returns the best records of tasks, by workload digest.
func (c *chooser) best(ctx context.Context, tasks []program.Task, numerics schedule.Numerics) (map[string]*tilthv1.Record, error) {
	if c.Lookup == nil || len(tasks) == 0 {
		return nil, nil
	}
	var digests []string
	for _, task := range tasks {
		digests = append(digests, task.Workload.Digest())
	}
	found, err := c.Lookup(ctx, c.target.Fingerprint(), numerics, digests...)
	if err != nil {
		return nil, err
	}
	best := map[string]*tilthv1.Record{}
	for _, r := range found {
		best[r.GetWorkloadDigest()] = r
	}
	return best, nil
}

// Count counts the choices of an origin.
func Count(choices []aot.Choice, origin string) (n int) {
	for _, c := range choices {
		if c.Origin == origin {
			n++
		}
	}
	return n
}

// alternative is one way to compute a task.
type alternative struct {
	choice   aot.Choice
	schedule *schedule.Schedule
	// seconds is the measured or estimated time of one call.
	seconds float64
	// added is what all calls add to the weights.
	added size
}

func newAlternative(task program.Task, s *schedule.Schedule, c aot.Choice, seconds float64) alternative {
	c.Trace = s.Trace()
	sums, all := s.AddedBytes()
	count := int64(task.Count)
	return alternative{choice: c, schedule: s, seconds: seconds, added: size{sums: max(0, sums*count), all: max(0, all*count)}}
}

// recorded returns the alternative of a task's record, or nil if the record does not replay, is not
// confirmed, or exceeds the numerics level.
func (c *chooser) recorded(ctx context.Context, task program.Task, r *tilthv1.Record, numerics schedule.Numerics) (*alternative, error) {
	m := r.GetMeasurement()
	s, err := schedule.Replay(task.Workload, m.GetCandidate().GetTrace())
	if err == nil && s.Numerics() > numerics {
		return c.refuse(task, fmt.Sprintf("it needs numerics %v, not %v", s.Numerics(), numerics))
	}
	if err != nil {
		return c.refuse(task, "its schedule does not replay: "+err.Error())
	}
	if c.forbids(s) {
		return c.refuse(task, fmt.Sprintf("it is the hand-written kernel %s: --kernels allows the kernel of a folder, --own-kernels all", s.Own.Kernel.Label()))
	}
	seconds, refused, err := c.confirmed(ctx, task, r, s, numerics)
	if err != nil {
		return nil, err
	}
	if refused != "" {
		return c.refuse(task, "it is not confirmed: "+refused)
	}
	choice := aot.Choice{Origin: FromRecord, LatencySeconds: cmp.Or(seconds, m.GetLatencySeconds()), RelativeError: m.GetRelativeError(), Record: origin(m)}
	a := newAlternative(task, s, choice, choice.LatencySeconds)
	return &a, nil
}

// refuse reports a record that cannot be used. There is no alternative then, which is no error.
func (c *chooser) refuse(task program.Task, reason string) (*alternative, error) {
	c.log.Warn("record not used", "task", task.Name, "reason", reason)
	if c.Refused != nil {
		c.Refused(task, reason)
	}
	return nil, nil
}

// origin identifies the record of a measurement.
func origin(m *tilthv1.Measurement) *aot.Record {
	key := records.KeyOf(m)
	return &aot.Record{
		Key: hex.EncodeToString(key[:]), Candidate: m.GetCandidate().GetDigest(), MeasuredAt: m.GetAt().AsTime().Format(time.RFC3339Nano),
	}
}

// confirmed confirms a record's schedule if confirmation is required.
func (c *chooser) confirmed(ctx context.Context, task program.Task, r *tilthv1.Record, s *schedule.Schedule, numerics schedule.Numerics) (seconds float64, refused string, err error) {
	if c.Confirm == nil {
		return 0, "", nil
	}
	standard, err := registry.Default(task.Workload, c.target, numerics)
	if err != nil {
		return 0, "", fmt.Errorf("default schedule of %s: %w", task.Name, err)
	}
	return c.Confirm(ctx, r, s, standard)
}

// untuned returns the default schedule of each algorithm that the numerics level allows, lowest analytic cost
// first. The cost serves as a time, so that tasks without records can be compared with others.
func untuned(task program.Task, s *searchspace.Space) ([]alternative, error) {
	b, err := registry.Of(s.Target)
	if err != nil {
		return nil, err
	}
	points := s.Defaults()
	s.Sort(points)
	var list []alternative
	for _, p := range points {
		applied, err := s.Apply(p)
		if err != nil {
			return nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
		}
		list = append(list, newAlternative(task, applied, aot.Choice{Origin: FromDefault}, s.Cost(p)/b.Clock(s.Target)))
	}
	return list, nil
}

// lighter returns the alternatives of a task with a record, the record first: the best record of direct sums,
// if any, and the default schedules of other algorithms. Their times are scaled like that of the record's
// algorithm, and none is assumed faster than the record, because the search considered them, too.
func (c *chooser) lighter(ctx context.Context, task program.Task, record alternative, numerics schedule.Numerics) ([]alternative, error) {
	list := []alternative{record}
	known := map[string]bool{algorithms(record.schedule): true}
	best, err := c.best(ctx, []program.Task{task}, schedule.Strict)
	if err != nil {
		return nil, err
	}
	if r := best[task.Workload.Digest()]; r != nil {
		a, err := c.recorded(ctx, task, r, schedule.Strict)
		if err != nil {
			return nil, err
		}
		if a != nil && !known[algorithms(a.schedule)] {
			list = append(list, *a)
			known[algorithms(a.schedule)] = true
		}
	}
	defaults, err := c.unmeasured(ctx, task, numerics)
	if err != nil {
		return nil, err
	}
	scale := 1.0
	for _, d := range defaults {
		if algorithms(d.schedule) == algorithms(record.schedule) {
			scale = record.seconds / d.seconds
		}
	}
	for _, d := range defaults {
		if !known[algorithms(d.schedule)] {
			d.seconds = max(d.seconds*scale, record.seconds)
			list = append(list, d)
		}
	}
	return list, nil
}

// algorithms identifies the algorithms of a schedule.
func algorithms(s *schedule.Schedule) string { return fmt.Sprint(s.Algorithms()) }

// forbids reports whether a schedule uses a hand-written kernel that is not allowed.
func (c *chooser) forbids(s *schedule.Schedule) bool {
	return s.Own != nil && (c.Own == nil || !c.Own(s.Own.Kernel))
}

// maxConfirmed is the number of schedules of a task measured in place of a record with a forbidden kernel.
const maxConfirmed = 3

// scheduled returns the fastest measured schedule of a task whose best record has a forbidden kernel, or nil
// if none is usable. Users who do not allow such a kernel thus lose nothing else.
func (c *chooser) scheduled(ctx context.Context, task program.Task, r *tilthv1.Record, numerics schedule.Numerics) (*alternative, error) {
	best, err := schedule.Replay(task.Workload, r.GetMeasurement().GetCandidate().GetTrace())
	if err != nil || !c.forbids(best) || c.Learn == nil {
		return nil, nil //nolint:nilerr // the caller has already reported it
	}
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	s, err := registry.Space(task.Workload, c.target, numerics)
	if err != nil {
		return nil, err
	}
	asked := 0
	for _, trial := range c.history.Trials(task.Workload.Digest()) {
		p, ok := s.Parse(trial.Origin)
		if !ok {
			continue
		}
		made, err := s.Apply(p)
		if err != nil || schedule.Digest(made.Trace()) != trial.Digest {
			continue // the rules have changed since
		}
		// The trial's record is not available, so the schedule is measured wherever it came from.
		seconds, refused, err := c.confirmed(ctx, task, &tilthv1.Record{WorkloadDigest: task.Workload.Digest(), Target: r.GetTarget()}, made, numerics)
		if err != nil {
			return nil, err
		}
		if asked++; refused != "" && asked < maxConfirmed {
			continue
		}
		if refused != "" {
			return nil, nil
		}
		latency := cmp.Or(seconds, trial.LatencySeconds)
		a := newAlternative(task, made, aot.Choice{Origin: FromRecord, LatencySeconds: latency}, latency)
		return &a, nil
	}
	return nil, nil
}

// unmeasured returns the schedules of a task without a record, one per algorithm that the numerics level allows,
// fastest first: according to the cost model, if there is something to learn from, or else the analytic cost. Weights
// in 16-bit floats stay so, as do their inputs: only measurements justify the memory of wider copies.
func (c *chooser) unmeasured(ctx context.Context, task program.Task, numerics schedule.Numerics) ([]alternative, error) {
	keeps := (numerics < schedule.Fast || c.MaxBytes > 0) && slices.ContainsFunc(task.Workload.Constants, isHalf)
	if keeps {
		numerics = schedule.Strict
	}
	s, err := registry.Space(task.Workload, c.target, numerics)
	if err != nil {
		return nil, err
	}
	if keeps {
		s = s.KeepsTypes()
	}
	guesses, err := c.guesses(ctx, s)
	if err != nil {
		return nil, err
	}
	var list []alternative
	if len(guesses) == 0 {
		if list, err = untuned(task, s); err != nil {
			return nil, err
		}
	}
	for _, g := range guesses {
		origin := FromTransfer
		if g.Default {
			origin = FromDefault
		}
		list = append(list, newAlternative(task, g.Schedule, aot.Choice{Origin: origin}, g.Seconds))
	}
	slices.SortStableFunc(list, func(a, b alternative) int { return cmp.Compare(a.seconds, b.seconds) })
	return list, nil
}

// isHalf reports whether elements are 16-bit floats.
func isHalf(t *expr.Tensor) bool { return t.DType == array.Float16 || t.DType == array.BFloat16 }

// learn reads the history once.
func (c *chooser) learn(ctx context.Context) error {
	if c.learnt {
		return nil
	}
	history, err := c.Learn(ctx, c.target)
	if err != nil {
		return err
	}
	c.history, c.learnt = history, true
	return nil
}

// guesses returns the guesses of the cost model, or none if there is nothing to learn from. If the model
// cannot be trained, only its guesses are missing.
func (c *chooser) guesses(ctx context.Context, s *searchspace.Space) ([]transfer.Prediction, error) {
	if c.Learn == nil {
		return nil, nil
	}
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	guesses, err := c.history.Predictions(s)
	if err != nil {
		c.log.Warn("the cost model cannot be used, using default schedules", "error", err)
		return nil, nil
	}
	return guesses, nil
}
