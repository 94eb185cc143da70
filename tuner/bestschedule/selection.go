package bestschedule

import (
	"context"
	"log/slog"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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
	// Own reports whether a hand-written kernel from a record may be used; nil allows none.
	Own func(*userkernel.Kernel) bool
	// MaxBytes is the size of the package that algorithms may use for larger weights; 0 means any.
	MaxBytes int64
}

// Choose returns a schedule for each task of a program: that of the best record, or else the cost model's
// best guess, or else the default. A record does not count if it does not replay or exceeds the numerics
// level. If the algorithms would make the weights too large, other alternatives are chosen that minimise the
// total time within the limit.
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
			if err != nil {
				return nil, err
			}
			if a == nil {
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
