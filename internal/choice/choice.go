// Package choice picks the schedules that a model is compiled with.
package choice

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/job"
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
// replay or is not allowed by the level of numerics, the default one. A nil lookup means default schedules for all. Where
// algorithms would make the weights too large, tasks have the best schedule that computes direct sums.
func Choose(ctx context.Context, p *graph.Program, t *target.Target, numerics schedule.Numerics, lookup Lookup, log *slog.Logger) ([]aot.Choice, error) {
	c := &chooser{target: t, lookup: lookup, log: log}
	choices, schedules, err := c.choose(ctx, p.Tasks, numerics)
	if err != nil {
		return nil, err
	}
	var heavy []graph.Task
	list := overweight(p, schedules)
	for _, k := range list {
		heavy = append(heavy, p.Tasks[k])
	}
	direct, _, err := c.choose(ctx, heavy, schedule.Strict)
	if err != nil {
		return nil, err
	}
	for i, k := range list {
		choices[k] = direct[i]
	}
	return choices, nil
}

// chooser chooses for one target.
type chooser struct {
	target *target.Target
	lookup Lookup
	log    *slog.Logger
}

func (c *chooser) choose(ctx context.Context, tasks []graph.Task, numerics schedule.Numerics) ([]aot.Choice, []*schedule.Schedule, error) {
	best, err := c.best(ctx, tasks, numerics)
	if err != nil {
		return nil, nil, err
	}
	choices, schedules := make([]aot.Choice, len(tasks)), make([]*schedule.Schedule, len(tasks))
	for i, task := range tasks {
		if r := best[task.Workload.Digest()]; r != nil {
			m := r.GetMeasurement()
			s, err := replay(task, m.GetCandidate().GetTrace(), numerics)
			if err == nil {
				schedules[i] = s
				choices[i] = aot.Choice{Trace: s.Trace(), Origin: FromRecord, LatencySeconds: m.GetLatencySeconds(), RelativeError: m.GetRelativeError()}
				continue
			}
			c.log.Warn("record does not replay, using the default schedule", "task", task.Name, "error", err)
		}
		s, err := job.Default(task.Workload, c.target, numerics)
		if err != nil {
			return nil, nil, fmt.Errorf("default schedule of %s: %w", task.Name, err)
		}
		choices[i], schedules[i] = aot.Choice{Trace: s.Trace(), Origin: FromDefault}, s
	}
	return choices, schedules, nil
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

// replay is the schedule of a trace, if the level of numerics allows it.
func replay(task graph.Task, trace []byte, numerics schedule.Numerics) (*schedule.Schedule, error) {
	s, err := schedule.Replay(task.Workload, trace)
	if err == nil && s.Numerics() > numerics {
		err = fmt.Errorf("its schedule needs numerics %v, not %v", s.Numerics(), numerics)
	}
	return s, err
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
