// Package choice picks the schedules that a model is compiled with.
package choice

import (
	"context"
	"log/slog"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Where a schedule comes from, as the package's manifest says it.
const (
	FromRecord  = "tuned"
	FromDefault = "default"
)

// Lookup returns the best records of workloads on a target that a level of numerics allows; workloads without one are left out.
type Lookup func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error)

// Choose returns a schedule for each task of a program: that of the best record, or, where there is none or it does not
// replay or is not allowed by the level of numerics, the default one. A nil lookup means default schedules for all. Where the
// algorithms of these would make the weights too large, tasks get others, so that the sum of their times is least within the limit.
func Choose(ctx context.Context, p *graph.Program, t *target.Target, numerics schedule.Numerics, lookup Lookup, log *slog.Logger) ([]aot.Choice, error) {
	c := &chooser{target: t, lookup: lookup, log: log}
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
	choices := make([]aot.Choice, len(tasks))
	for k, list := range tasks {
		choices[k] = list[picked[k]].choice
	}
	return choices, nil
}

// chooser chooses for one target.
type chooser struct {
	target *target.Target
	lookup Lookup
	log    *slog.Logger
}

// alternatives are what is known of each task without asking more of its records: its best one, or its default schedules, the fastest
// first.
func (c *chooser) alternatives(ctx context.Context, tasks []graph.Task, numerics schedule.Numerics) ([][]alternative, error) {
	best, err := c.best(ctx, tasks, numerics)
	if err != nil {
		return nil, err
	}
	lists := make([][]alternative, len(tasks))
	for i, task := range tasks {
		if r := best[task.Workload.Digest()]; r != nil {
			a, err := recorded(task, r, numerics)
			if err == nil {
				lists[i] = []alternative{a}
				continue
			}
			c.log.Warn("record does not replay, using the default schedule", "task", task.Name, "error", err)
		}
		if lists[i], err = untuned(task, c.target, numerics); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// addLighter adds to the records that make the weights larger what may be used in their place.
func (c *chooser) addLighter(ctx context.Context, tasks []graph.Task, lists [][]alternative, numerics schedule.Numerics) (err error) {
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
func (c *chooser) best(ctx context.Context, tasks []graph.Task, numerics schedule.Numerics) (map[string]*tilthv1.Record, error) {
	if c.lookup == nil || len(tasks) == 0 {
		return nil, nil
	}
	var digests []string
	for _, task := range tasks {
		digests = append(digests, task.Workload.Digest())
	}
	found, err := c.lookup(ctx, c.target.Fingerprint(), numerics, digests...)
	if err != nil {
		return nil, err
	}
	best := map[string]*tilthv1.Record{}
	for _, r := range found {
		best[r.GetWorkloadDigest()] = r
	}
	return best, nil
}

// Tuned counts the choices that come from records.
func Tuned(choices []aot.Choice) (n int) {
	for _, c := range choices {
		if c.Origin == FromRecord {
			n++
		}
	}
	return n
}
