package selection

import (
	"context"
	"log/slog"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/own"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// Where a schedule comes from, as the package's manifest says it.
const (
	FromRecord = "tuned"
	// FromTransfer is the cost model's best guess, learnt from the records of other workloads.
	FromTransfer = "transferred"
	FromDefault  = "default"
)

// Lookup returns the best records of workloads on a target that a level of numerics allows; workloads without one are
// left out.
type Lookup func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error)

// Learn returns what was measured of any workload on a target and on its siblings; nil when nothing was.
type Learn func(context.Context, *target.Target) (*knowledge.History, error)

// Confirm measures the schedule of a record on this machine, beside the default one of its task, and returns its
// latency here in seconds, or why it is not to be trusted. A record that was made here needs no confirmation: then
// there are neither.
type Confirm func(ctx context.Context, r *tilthv1.Record, s, standard *schedule.Schedule) (seconds float64, refused string, err error)

// Sources are what schedules are chosen from. All may be nil.
type Sources struct {
	Lookup Lookup
	// Learn is called once, if some task has no record.
	Learn Learn
	// Confirm is asked of each record before it is used.
	Confirm Confirm
	// Own says whether a kernel that somebody wrote, and whose source came with a record, may be used; nil = none.
	Own func(*own.Kernel) bool
}

// Choose returns a schedule for each task of a program: that of the best record; where there is none or it does not
// replay or is not allowed by the level of numerics, what the cost model thinks is best; and where nothing was
// measured of other workloads either, the default one. Where the algorithms of these would make the weights too large,
// tasks get others, so that the sum of their times is least within the limit.
func Choose(ctx context.Context, p *program.Program, t *target.Target, numerics schedule.Numerics, from Sources, log *slog.Logger) ([]aot.Choice, error) {
	c := &chooser{target: t, Sources: from, log: log}
	tasks, err := c.alternatives(ctx, p.Tasks, numerics)
	if err != nil {
		return nil, err
	}
	picked := make([]int, len(tasks))
	if limit := limitOf(p); !fastest(tasks).within(limit) {
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
	// history is what Learn returned, once it was called.
	history *knowledge.History
	learnt  bool
}

// alternatives are what is known of each task without asking more of its records: its best one, or what the cost model
// and the rules think of each algorithm, the fastest first.
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

// addLighter adds to the records that make the weights larger what may be used in their place.
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

// best are the best records of tasks, by the workload's digest.
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

// Tuned counts the choices that come from records of their own workload.
func Tuned(choices []aot.Choice) int { return count(choices, FromRecord) }

// Transferred counts the choices that were learnt from the records of other workloads.
func Transferred(choices []aot.Choice) int { return count(choices, FromTransfer) }

func count(choices []aot.Choice, origin string) (n int) {
	for _, c := range choices {
		if c.Origin == origin {
			n++
		}
	}
	return n
}
